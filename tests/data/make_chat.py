#!/usr/bin/env python3
"""Makes tests/data/chat/cases.json: what transformers' chat templates make of a conversation.

usage: make_chat.py OUT
"""
import datetime
import json
import sys

from transformers.utils import chat_template_utils
from transformers.utils.chat_template_utils import render_jinja_template

CHATML = """{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system
You are a helpful AI assistant<|im_end|>
' }}{% endif %}{{'<|im_start|>' + message['role'] + '
' + message['content'] + '<|im_end|>' + '
'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant
' }}{% endif %}"""
LLAMA3 = """{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}"""
GEMMA = """{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}{% if (message['role'] == 'assistant') %}{% set role = 'model' %}{% else %}{% set role = message['role'] %}{% endif %}{{ '<start_of_turn>' + role + '\n' + message['content'] | trim + '<end_of_turn>\n' }}{% endfor %}{% if add_generation_prompt %}{{'<start_of_turn>model\n'}}{% endif %}"""
BLOCKS = """{%- set ns = namespace(system='', turns=0) %}
{%- macro shown(message) %}
    {{- '[' ~ message.role.upper() ~ '] ' ~ message['content'].strip().split('\\n')[-1] }}
{%- endmacro %}
{%- for message in messages %}
    {%- if message.role == 'system' %}
        {%- set ns.system = message.content %}
        {%- continue %}
    {%- endif %}
    {%- set ns.turns = ns.turns + 1 %}
    {% generation %}
{{ shown(message) }}
    {% endgeneration %}
{%- endfor %}
{%- if ns.system is defined and ns.system != '' %} ({{ ns.system | length }} {{ ns.system.startswith('Be') }}){% endif %}

{{ {'turns': ns.turns, 'say': messages[-1].content, 'list': [1, 2]} | tojson }}
{%- if add_generation_prompt %}
{{ eos_token }}>
{%- endif %}
"""
# The shape of Llama 3.2's own: the date where the template can have it.
LLAMA32 = """{{- bos_token }}
{%- if custom_tools is defined %}
    {%- set tools = custom_tools %}
{%- endif %}
{%- if not date_string is defined %}
    {%- if strftime_now is defined %}
        {%- set date_string = strftime_now("%d %b %Y") %}
    {%- else %}
        {%- set date_string = "26 Jul 2024" %}
    {%- endif %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
{%- if tools is not none %}
    {{- "Environment: ipython\\n" }}
{%- endif %}
{{- "Cutting Knowledge Date: December 2023\\n" }}
{{- "Today Date: " + date_string + "\\n\\n" }}
{{- system_message }}
{{- "<|eot_id|>" }}
{%- for message in messages %}
    {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
"""
DATES = """{{ strftime_now('%Y-%m-%d %H:%M:%S %j %A %B %y %I %p %%') }}{{ messages[-1].content }}"""


class Date(datetime.datetime):
    """The date that tests take for now."""

    @classmethod
    def now(cls, tz=None):
        return cls(2024, 12, 5, 8, 7, 6)


chat_template_utils.datetime = Date
TOKENS = {'bos_token': '<s>', 'eos_token': '</s>'}
cases = []
for name, template in dict(chatml=CHATML, llama3=LLAMA3, gemma=GEMMA, blocks=BLOCKS, llama32=LLAMA32, dates=DATES).items():
    for system in (None, 'Be brief; 说中文 "ok".'):
        for user in ('Hello', '  What is 2+2?\nSay <b>it</b> & "why"\n'):
            messages = ([{'role': 'system', 'content': system}] if system else []) + [{'role': 'user', 'content': user}]
            try:
                rendered, _ = render_jinja_template([messages], chat_template=template, add_generation_prompt=True, **TOKENS)
                said = rendered[0]
            except Exception as e:
                said = None
            cases.append({'name': name, 'template': template, 'system': system, 'user': user, 'said': said})
json.dump({'tokens': TOKENS, 'cases': cases}, open(sys.argv[1] + '/cases.json', 'w'), ensure_ascii=False, indent=1)
print(len(cases), [c['said'] for c in cases if c['name'] == 'blocks'])
