'use strict';
(() => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const button = (text, press) => {
    const made = document.createElement('button');
    made.type = 'button';
    made.textContent = text;
    made.addEventListener('click', press);
    return made;
  };

  // Tables are sorted by their cells: figures by size in one unit, all other cells as text.
  const units = {ns: 1, 'ns/line': 1, 'µs': 1e3, 'µs/line': 1e3, ms: 1e6, s: 1e9, KiB: 1024, MiB: 1048576, GiB: 1073741824};
  const size = text => {
    const found = /^(?:< )?[×+]?(-?[0-9.]+(?:e-?[0-9]+)?)\s*(\S*)/.exec(text);
    return found ? parseFloat(found[1]) * (units[found[2]] || 1) : NaN;
  };
  const order = (a, b) => {
    const [x, y] = [size(a), size(b)];
    if (isNaN(x) || isNaN(y)) return isNaN(x) - isNaN(y) || a.localeCompare(b);
    return x - y;
  };
  for (const table of all('table')) {
    const bodies = all('tbody', table).map(body => [body, [...body.rows]]);
    const heads = all('thead th', table);
    heads.forEach((head, column) => {
      const name = head.textContent;
      head.textContent = '';
      head.append(button(name, () => {
        const next = {none: 'ascending', ascending: 'descending', descending: 'none'}[head.ariaSort || 'none'];
        heads.forEach(other => { other.ariaSort = null; other.firstChild.textContent = other.dataset.name; });
        if (next !== 'none') head.ariaSort = next;
        head.firstChild.textContent = name + {none: '', ascending: ' ↑', descending: ' ↓'}[next];
        for (const [body, rows] of bodies) {
          const group = rows.filter(row => row.className === 'group');
          const rest = rows.filter(row => row.className !== 'group');
          const of = row => (row.cells[column] ? row.cells[column].innerText : '').trim();
          const sign = next === 'descending' ? -1 : 1;
          if (next !== 'none') rest.sort((a, b) => sign * order(of(a), of(b)));
          body.append(...group, ...rest);
        }
      }));
      head.dataset.name = name;
    });
  }

  // A row without evidence has its name alone until here: its command and its link are what unfolds.
  for (const head of all('.results tr[id] > th')) {
    if (head.firstElementChild) continue;
    const [folded, summary] = [document.createElement('details'), document.createElement('summary')];
    summary.append(...head.childNodes);
    folded.append(summary);
    head.append(folded);
  }

  // Each row names the command that measures it again, where its name is safe in a shell.
  for (const body of all('.results tbody')) {
    const [group, ...rows] = body.rows;
    if (!('run' in group.dataset)) continue;
    const benchmark = group.cells[0].firstChild.textContent.trim();
    for (const summary of rows.map(row => row.querySelector('summary'))) {
      const name = summary.firstChild.textContent.trim();
      const of = name === benchmark ? name : `${benchmark}{${name}}`;
      if (/^[\w/{}=,. +:-]+$/.test(of)) summary.after(`tollgate run '${of}'`);
    }
  }

  // Each row has a link to itself, which can be copied. A link opens the table that its row is in.
  for (const row of all('tr[id]')) {
    const link = Object.assign(document.createElement('a'), {href: '#' + encodeURIComponent(row.id), textContent: 'link', ariaLabel: 'Link to ' + row.id});
    row.querySelector('summary').after(link, ' ');
  }
  const show = () => {
    const hash = location.hash.slice(1);
    const row = all('tr[id]').find(row => row.id === hash || encodeURIComponent(row.id) === hash);
    if (!row) return;
    row.closest('details').open = row.querySelector('details').open = true;
    row.scrollIntoView({behavior: 'instant'});
  };
  addEventListener('hashchange', show);
  show();

  // An environment can be hidden from the pictures.
  for (const name of all('.name[data-environment]')) {
    const hide = button('hide', () => {
      const off = document.documentElement.classList.toggle('off' + name.dataset.environment);
      hide.textContent = off ? 'show' : 'hide';
      hide.setAttribute('aria-pressed', String(off));
    });
    hide.setAttribute('aria-pressed', 'false');
    hide.setAttribute('aria-label', 'Hide ' + name.querySelector('b').textContent);
    name.append(' ', hide);
  }

  // The title of a mark is shown at once, not after the browser's delay.
  const tip = document.createElement('div');
  tip.className = 'tip';
  tip.hidden = true;
  document.body.append(tip);
  const say = (text, event) => {
    tip.textContent = text;
    tip.hidden = !text;
    const left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8);
    tip.style.left = Math.max(4, left) + 'px';
    tip.style.top = (event.clientY > 60 ? event.clientY - tip.offsetHeight - 10 : event.clientY + 18) + 'px';
  };
  let pointed = null;
  const leave = () => {
    if (pointed) pointed.prepend(pointed.said);
    pointed = null;
    tip.hidden = true;
  };
  document.addEventListener('pointerover', event => {
    const mark = event.target.closest('figure svg :is(use, g)');
    if (mark === pointed) return;
    leave();
    const said = mark && mark.querySelector(':scope > title');
    if (!said) return;
    said.remove();
    mark.said = said;
    pointed = mark;
  });
  document.addEventListener('pointermove', event => { if (pointed) say(pointed.said.textContent, event); });

  // Rows are found by their text, and noisy ones can be left out.
  const nav = document.querySelector('nav');
  const make = (name, given) => Object.assign(document.createElement(name), given);
  const find = make('input', {type: 'search', placeholder: 'Find', ariaLabel: 'Find rows by name or fact'});
  const found = make('output', {});
  const noisy = make('input', {type: 'checkbox', checked: true});
  const label = make('label', {});
  label.append(noisy, ' noisy ~');
  nav.append(find, found, label);
  noisy.addEventListener('change', () => document.documentElement.classList.toggle('quiet', !noisy.checked));
  const rows = all('.rows li, tbody tr:not(.group)').map(row => {
    const table = row.closest('table.results');
    return {row, text: ((table ? row.parentNode.rows[0].textContent : '') + ' ' + row.textContent).toLowerCase()};
  });
  const holders = all('figure, .rows, details.all, tbody, main > section').reverse();
  const opened = new Set();
  find.addEventListener('input', () => {
    const wanted = find.value.trim().toLowerCase().split(/\s+/);
    const isAsked = wanted[0] !== '';
    let number = 0;
    for (const {row, text} of rows) {
      row.hidden = isAsked && !wanted.every(word => text.includes(word));
      number += !row.hidden;
    }
    for (const holder of holders) {
      const has = holder.querySelector('.rows li:not([hidden]), tbody tr:not(.group):not([hidden])');
      holder.hidden = isAsked && !has;
      if (holder.localName !== 'details') continue;
      if (isAsked && has && !holder.open) opened.add(holder);
      if (opened.has(holder)) holder.open = isAsked && Boolean(has);
      if (!isAsked) opened.delete(holder);
    }
    found.textContent = isAsked ? number + (number === 1 ? ' row' : ' rows') : '';
  });
})();
