'use strict';
// Stepping by keyboard, the other language, and the operands of a result. Without this the page is complete, only still.
(() => {
  const body = document.body, bar = document.getElementById('bar');
  const steps = [...document.querySelectorAll('section')];
  let now = -1, pinned = false;
  body.classList.add('on');
  const speak = lang => {
    body.dataset.lang = lang;
    document.documentElement.lang = lang === 'zh' ? 'zh-CN' : 'en';
  };
  const go = (to, focus = true) => {
    now = Math.max(0, Math.min(steps.length - 1, to));
    steps.forEach((s, i) => s.classList.toggle('now', i === now));
    const head = steps[now].querySelector('h2');
    if (focus) { head.focus({preventScroll: true}); head.scrollIntoView(); }
  };
  const line = cell => document.getElementById('d' + cell.id.slice(1));
  const dim = () => {
    document.querySelectorAll('.lit').forEach(e => e.classList.remove('lit'));
    bar.replaceChildren();
  };
  const light = cell => {
    dim();
    const from = line(cell);
    if (!from) return;
    for (const a of from.querySelectorAll('a')) document.getElementById(a.hash.slice(1))?.classList.add('lit');
    const copy = from.cloneNode(true);
    copy.removeAttribute('id');
    bar.append(copy);
  };
  const cellOf = e => e.target.closest?.('[id^=c]');
  document.addEventListener('mouseover', e => { const c = cellOf(e); if (c && !pinned) light(c); });
  document.addEventListener('click', e => {
    if (e.target.closest('a')) { pinned = false; return; }
    const c = cellOf(e);
    pinned = false;
    if (c) { light(c); pinned = true; } else if (!e.target.closest('#bar')) dim();
  });
  const follow = () => {
    const c = location.hash && document.getElementById(location.hash.slice(1));
    if (!c) return;
    const s = steps.indexOf(c.closest('section'));
    if (s >= 0) go(s, c.matches('section'));
    if (c.matches('[id^=c]')) { light(c); pinned = true; c.scrollIntoView({block: 'center'}); }
  };
  addEventListener('hashchange', follow);
  addEventListener('keydown', e => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const to = {ArrowRight: now + 1, n: now + 1, ArrowLeft: now - 1, p: now - 1, Home: 0, End: steps.length - 1}[e.key];
    if (to !== undefined) { e.preventDefault(); go(to); }
    else if (e.key === 'l') speak(body.dataset.lang === 'zh' ? 'en' : 'zh');
    else if (e.key === 'Escape') { pinned = false; dim(); }
  });
  document.getElementById('language').addEventListener('click', () => speak(body.dataset.lang === 'zh' ? 'en' : 'zh'));
  follow();
})();
