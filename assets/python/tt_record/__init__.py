"""Records what a PyTorch or Hugging Face model computes, for `tui-transformer FILE` and `tui-transformer compare`.

As a module, around one forward pass (or several) of any `torch.nn.Module`:

    from tt_record import record
    model.eval()
    with torch.no_grad(), record(model, "ref.safetensors"):
        model(**inputs)

With gradients, of every output and of the parameters, as `NAME.grad`:

    with record(model, "ref.safetensors", backward=True):
        model(**inputs).loss.backward()

As a script, for a Hugging Face checkpoint in a folder (or on the hub):

    tt-record --hf PATH --text "a sentence" -o ref.safetensors
    tt-record --hf PATH --ids "2 7 9 3" --ids "2 5 3" --dtype float64 -o ref.safetensors

Inside an engine that owns the forward pass (vLLM, DeepSpeed, a server), from a function it runs in its workers;
the file is written when the first pass ends. Turn CUDA graphs and compilation off there ("eager" mode), since
neither calls hooks:

    record(model, "ref.safetensors", calls=1).start()

Where several processes share the work (torch.distributed, or RANK and WORLD_SIZE in the environment) each writes
what it saw itself: `ref.rank0.safetensors`, `ref.rank1.safetensors`, … Put them together to what one process would
have recorded:

    tt-record --merge ref.rank*.safetensors -o ref.safetensors

Whole batches of each process (data parallel, FSDP) are joined along the batch, shares of tensors (tensor parallel) as
their placement says, layers of a pipeline one after the other. Which process is which is seen from the recordings
for one of the first two; for a pipeline, for parts of the sequence, and where several are combined, say it:

    record(stage, "ref.safetensors", mesh={"pp": (0, 2), "tp": (1, 2)})      # or a DeviceMesh with names

What is in the file, every tensor in the type it had, copied to disk the moment it was there:

    NAME             output of the module NAME, such as `encoder.layer.0.attention.self.query`; the first one of a tuple
    NAME[1]          further outputs of a tuple
    NAME.KEY         output KEY of a module that returns a dict; in the whole model's own outputs just KEY, such as
                     `logits`, and KEY_0, KEY_1, … where that is a tuple, such as `hidden_states_0`; `output` where the
                     whole model returns a bare tensor
    NAME.scores      what a softmax inside the module NAME was given: attention scores, scaled and masked
    NAME.weights     what it returned: attention weights
    NAME.in          what a norm was given: the residual stream after a sum that no module makes
    NAME.q_rotated   queries and keys after rotary positions (`.k_rotated`), where the model's file has the usual
                     `apply_rotary_pos_emb` of transformers; only the components that rotate where the others do not
    NAME.grad        gradient of any of these, or of a parameter, with `backward=True`
    input_ids, …     arguments of the whole model, by parameter name
    …#1              the same in the second call, …#2 in the third

Metadata, text all of it: `framework`, `class`, `model_type` and `attention` (Hugging Face), `training`, `rank`,
`world_size`, and as JSON `order` (names as they came to be), `inputs`, `outputs`, `parameters` (gradients of
parameters), `classes` (class by module name), `skipped` (name and reason), `mesh`, `placements` (which axis of a
tensor is shared between processes), `fused` (modules that compute several things at once, and how many or their
widths), `batch_axis` (modules that have the tokens before the batch), `partial_rotary`.

Attention must be "eager": a fused kernel never holds scores or weights, so that nothing of them can be recorded (a
warning says so). Of `nn.MultiheadAttention` and `nn.TransformerEncoder`, which take fused ways by themselves, scores
and weights are computed a second time. What the model returns is never changed, not in a single bit.
"""
from ._errors import RecordError
from ._merge import merge
from ._parallel import rank_and_world
from ._recorder import record
from .cli import main

__all__ = ["record", "merge", "main", "RecordError", "rank_and_world"]
__version__ = "1.0.0"
