"use strict";
// The page of a model. Every text of a file goes through esc() or textContent: names may hold anything.
const D = JSON.parse(document.getElementById("facts").textContent);
const $ = id => document.getElementById(id);
const esc = s => String(s).replace(/[&<>"']/g, c => `&#${c.charCodeAt(0)};`);
const cut = (s, n) => s.length <= n ? s : s.slice(0, Math.ceil((n - 1) / 2)) + "\u2026" + s.slice(-Math.floor((n - 1) / 2));
const count = (n, what) => `${n} ${what}${n === 1 ? "" : "s"}`;
// Of any number of numbers: a call takes some 100,000 arguments.
const least = xs => xs.reduce((a, b) => Math.min(a, b)), most = xs => xs.reduce((a, b) => Math.max(a, b));
function amount(n, unit) {
  let k = 0;
  for (; n >= 999.5 && k < 4; k++) n /= 1000;
  return `${k && n < 9.95 ? n.toFixed(1) : Math.round(n)} ${["", "k", "M", "G", "T"][k]}${unit}`;
}
const micro = s => s >= 1e-3 ? `${(1e3 * s).toFixed(2)} ms` : `${(1e6 * s).toFixed(1)} \u00b5s`;
const shaped = t => t.shape === null ? "[...]" : `[${t.shape.map(n => n === null ? "?" : n).join(",")}]`;
const typed = t => t.type.replace(/^TENSOR_/, "");

const tensors = new Map(D.tensors.map(t => [`${t.subgraph}\n${t.name}`, t]));
const tensor = (node, name) => tensors.get(`${node.subgraph}\n${name}`);
const readers = new Map();
D.nodes.forEach((n, i) => n.inputs.forEach(name => {
  const key = `${n.subgraph}\n${name}`;
  readers.has(key) ? readers.get(key).push(i) : readers.set(key, [i]);
}));

// ---- what is open, and where everything stands -------------------------------------------------------------------
const SMALL = 40;                              // operations up to which all of a graph is shown at first
const BOX = {w: 168, h: 38}, SHUT = {w: 190, h: 46}, BEND = 10, GAP = 22, RISE = 30, PAD = 14, HEAD = 22;
const outer = D.graph.members, open = new Set(), holder = new Map();
outer.forEach((own, k) => own.forEach(n => holder.set(n, k)));
const blockAt = new Map(D.blocks.map(b => [b.first, b]));

// Ranks of sized things: x by order, pulled towards what they hang on, y by the highest of each rank above.
function arrange(drawing, sizes, edges) {
  const {ranks, bends} = drawing, x = new Map(), near = new Map();
  const width = n => n < sizes.length ? sizes[n].w : BEND;
  const link = (a, b) => { (near.get(b) || near.set(b, []).get(b)).push(a); };
  edges.forEach(([a, b], e) => {
    const way = [a, ...bends[e], b];
    for (let i = 1; i < way.length; i++) link(way[i - 1], way[i]);
  });
  for (const row of ranks) {
    const wish = row.map(n => {
      const above = (near.get(n) || []).filter(m => x.has(m));
      return above.length ? above.reduce((s, m) => s + x.get(m), 0) / above.length : null;
    });
    let at = 0;
    const own = row.map((n, i) => { const mid = at + width(n) / 2; at += width(n) + GAP; return mid; });
    const known = wish.map((w, i) => w === null ? null : w - own[i]).filter(w => w !== null);
    const shift = known.length ? known.reduce((s, w) => s + w, 0) / known.length : -at / 2;
    let left = -Infinity;
    row.forEach((n, i) => {
      const want = wish[i] === null ? own[i] + shift : (wish[i] + own[i] + shift) / 2;
      const mid = Math.max(want, left + width(n) / 2);
      x.set(n, mid);
      left = mid + width(n) / 2 + GAP;
    });
  }
  const y = new Map();
  let top = 0;
  for (const row of ranks) {
    const high = row.reduce((s, n) => Math.max(s, n < sizes.length ? sizes[n].h : 0), 0);
    row.forEach(n => y.set(n, {top, mid: top + high / 2, high}));
    top += high + RISE;
  }
  let min = Infinity, max = -Infinity;
  for (const row of ranks) for (const n of row) {
    min = Math.min(min, x.get(n) - width(n) / 2);
    max = Math.max(max, x.get(n) + width(n) / 2);
  }
  if (min > max) min = max = 0;
  const box = n => ({x: x.get(n) - sizes[n].w / 2 - min, y: y.get(n).mid - sizes[n].h / 2, ...sizes[n]});
  const boxes = sizes.map((_, n) => box(n));
  const lines = edges.map(([a, b], e) => {
    const from = boxes[a], to = boxes[b];
    const points = [[from.x + from.w / 2, from.y + from.h]];
    for (const n of bends[e]) {
      const r = y.get(n);
      points.push([x.get(n) - min, r.top], [x.get(n) - min, r.top + r.high]);
    }
    points.push([to.x + to.w / 2, to.y]);
    return points;
  });
  return {boxes, lines, w: max - min, h: Math.max(0, top - RISE)};
}

function curve(points, dx, dy) {
  let d = `M${(points[0][0] + dx).toFixed(1)} ${(points[0][1] + dy).toFixed(1)}`;
  for (let i = 1; i < points.length; i++) {
    const [a, b] = points[i - 1], [p, q] = points[i], m = ((b + q) / 2 + dy).toFixed(1);
    d += `C${(a + dx).toFixed(1)} ${m} ${(p + dx).toFixed(1)} ${m} ${(p + dx).toFixed(1)} ${(q + dy).toFixed(1)}`;
  }
  return `<path class="edge" d="${d}"/>`;
}

const insides = D.graph.inner.map((inner, k) => inner && arrange(inner, outer[k].map(() => BOX), inner.edges));
const spots = new Map();
let world = {w: 0, h: 0};

function draw() {
  const sizes = outer.map((own, k) => own.length === 1 ? BOX : !open.has(k) ? SHUT
    : {w: insides[k].w + 2 * PAD, h: insides[k].h + 2 * PAD + HEAD});
  world = arrange(D.graph, sizes, D.graph.edges);
  spots.clear();
  const parts = world.lines.map(p => curve(p, 0, 0));
  outer.forEach((own, k) => {
    const box = world.boxes[k];
    if (own.length === 1) { parts.push(operation(own[0], box)); return; }
    const b = blockAt.get(own[0]), title = `block ${b.number + 1} of ${b.of}`;
    const shade = open.has(k) ? "" : `style="fill:${together(own)}"`;
    parts.push(`<g class="block" data-block="${k}"><rect ${shade} x="${box.x}" y="${box.y}" width="${box.w}" height="${box.h}" rx="8"/>`,
      `<text x="${box.x + 10}" y="${box.y + 17}">${title}, ${count(own.length, "operation")} ${open.has(k) ? "\u25be" : "\u25b8"}</text>`);
    if (open.has(k)) {
      const dx = box.x + PAD, dy = box.y + PAD + HEAD;
      parts.push("</g>", ...insides[k].lines.map(p => curve(p, dx, dy)));
      own.forEach((n, i) => {
        const c = insides[k].boxes[i];
        parts.push(operation(n, {...c, x: c.x + dx, y: c.y + dy}));
      });
    } else {
      const more = byTime() && seconds(own) !== null ? micro(seconds(own)) : cut(b.names.join(", "), 27);
      parts.push(`<text class="small" x="${box.x + 10}" y="${box.y + 34}">${esc(more)}</text></g>`);
      own.forEach(n => spots.set(n, box));
    }
  });
  $("world").innerHTML = parts.join("");
  mark();
}

function operation(i, box) {
  const n = D.nodes[i];
  spots.set(i, box);
  const out = n.outputs.length ? tensor(n, n.outputs[0]) : null;
  const more = byTime() ? (n.seconds === null ? "not measured" : micro(n.seconds))
    : out ? `${out.dtype} ${shaped(out)}` : "";
  return `<g class="node" data-node="${i}"><rect class="${n.place}" ${tint(n)} x="${box.x.toFixed(1)}" y="${box.y.toFixed(1)}" `
    + `width="${box.w}" height="${box.h}" rx="6"/><text x="${(box.x + 9).toFixed(1)}" y="${(box.y + 16).toFixed(1)}">`
    + `${esc(cut(n.source || n.operation, 21))}</text><text class="small" x="${(box.x + 9).toFixed(1)}" y="${(box.y + 30).toFixed(1)}">`
    + `${esc(cut(more, 26))}</text></g>`;
}

const slowest = D.nodes.reduce((s, n) => Math.max(s, n.seconds || 0), 1e-12);
const byTime = () => $("colour").value === "time";
const heat = s => s === null ? "var(--none)"
  : `color-mix(in oklab, #e5542f ${(100 * Math.sqrt(Math.min(1, s / slowest))).toFixed(0)}%, var(--panel))`;
const tint = n => byTime() ? `style="fill:${heat(n.seconds)}"` : "";

// A closed block: the time of all of it, or the place of what in it is furthest from the device.
const FURTHEST = ["refused", "host", "DENSIFY", "EX", "base", "none"];
const furthest = own => FURTHEST.find(p => own.some(i => D.nodes[i].place === p));
function seconds(own) {
  const found = own.map(i => D.nodes[i].seconds).filter(s => s !== null);
  return found.length ? found.reduce((a, b) => a + b) : null;
}
const together = own => byTime() ? heat(seconds(own)) : `var(--${furthest(own).toLowerCase()})`;

// ---- seeing: pan, zoom, search -----------------------------------------------------------------------------------
const canvas = $("canvas");
let view = {x: 0, y: 0, k: 1};
function look() { $("world").setAttribute("transform", `translate(${view.x} ${view.y}) scale(${view.k})`); }
function zoom(factor, cx, cy) {
  const k = Math.min(4, Math.max(0.002, view.k * factor));
  view = {x: cx - (cx - view.x) * k / view.k, y: cy - (cy - view.y) * k / view.k, k};
  look();
}
function fit() {
  const {clientWidth: w, clientHeight: h} = canvas;
  const k = Math.min(1.2, w / (world.w + 60), h / (world.h + 60));
  view = {k, x: (w - world.w * k) / 2, y: (h - world.h * k) / 2};
  look();
}
function begin() {
  const k = Math.min(1, Math.max(0.35, canvas.clientWidth / (world.w + 60)));
  const first = D.graph.ranks.length ? D.graph.ranks[0].filter(n => n < outer.length).map(n => world.boxes[n]) : [];
  const mid = first.length ? first.reduce((s, b) => s + b.x + b.w / 2, 0) / first.length : 0;
  const wide = world.w * k > canvas.clientWidth;
  view = {k, x: canvas.clientWidth / 2 - (wide ? mid : world.w / 2) * k, y: 24};
  look();
}
function goto(i) {
  const k = holder.get(i);
  if (outer[k].length > 1 && !open.has(k)) { open.add(k); draw(); }
  const box = spots.get(i), scale = Math.max(view.k, 0.8);
  view = {k: scale, x: canvas.clientWidth / 2 - (box.x + box.w / 2) * scale, y: canvas.clientHeight / 2 - (box.y + box.h / 2) * scale};
  look();
}
canvas.addEventListener("wheel", e => {
  e.preventDefault();
  const r = canvas.getBoundingClientRect();
  zoom(Math.exp(-e.deltaY * (e.ctrlKey ? 0.01 : 0.0015)), e.clientX - r.left, e.clientY - r.top);
}, {passive: false});
let drag = null;
canvas.addEventListener("pointerdown", e => { drag = {x: e.clientX, y: e.clientY, moved: false}; });
window.addEventListener("pointermove", e => {
  if (!drag) return;
  const dx = e.clientX - drag.x, dy = e.clientY - drag.y;
  if (!drag.moved && Math.hypot(dx, dy) < 4) return;
  drag = {x: e.clientX, y: e.clientY, moved: true};
  canvas.classList.add("dragged");
  view = {...view, x: view.x + dx, y: view.y + dy};
  look();
});
window.addEventListener("pointerup", e => {
  const was = drag;
  drag = null;
  canvas.classList.remove("dragged");
  if (!was || was.moved || !canvas.contains(e.target)) return;
  const node = e.target.closest("[data-node]"), block = e.target.closest("[data-block]");
  if (node) choose(+node.dataset.node);
  else if (block) { const k = +block.dataset.block; open.has(k) ? open.delete(k) : open.add(k); draw(); }
});
$("fit").onclick = fit;
$("closer").onclick = () => zoom(1.3, canvas.clientWidth / 2, canvas.clientHeight / 2);
$("further").onclick = () => zoom(1 / 1.3, canvas.clientWidth / 2, canvas.clientHeight / 2);
function shut(closed) {
  $("collapse").checked = closed;
  open.clear();
  if (!closed) outer.forEach((own, k) => { if (own.length > 1) open.add(k); });
  draw();
  begin();
}
$("collapse").onchange = () => shut($("collapse").checked);
$("colour").onchange = () => { draw(); legend(); };

let matches = [], current = -1, chosen = null;
const words = D.nodes.map(n => [n.origin, n.source, n.operation, ...n.inputs, ...n.outputs,
  ...n.lowered.map(v => v.name), ...n.outputs.map(o => tensor(n, o)).filter(Boolean).map(t => `${t.dtype} ${typed(t)} ${shaped(t)}`)]
  .join("\n").toLowerCase());
function search() {
  const asked = $("search").value.trim().toLowerCase();
  matches = asked ? words.flatMap((w, i) => w.includes(asked) ? [i] : []) : [];
  current = -1;
  $("found").textContent = asked ? count(matches.length, "match").replace("matchs", "matches") : "";
  mark();
}
function next(step) {
  if (!matches.length) return;
  current = (current + step + matches.length) % matches.length;
  $("found").textContent = `${current + 1} of ${matches.length}`;
  goto(matches[current]);
  choose(matches[current]);
}
$("search").oninput = search;
$("search").onkeydown = e => { if (e.key === "Enter") next(e.shiftKey ? -1 : 1); };
document.addEventListener("keydown", e => {
  if (e.key === "/" && e.target.tagName !== "INPUT") { e.preventDefault(); $("search").focus(); }
  if (e.key === "Escape") choose(null);
});
function mark() {
  const wanted = new Set(matches);
  for (const g of $("world").querySelectorAll("[data-node]")) {
    g.classList.toggle("match", wanted.has(+g.dataset.node));
    g.classList.toggle("chosen", +g.dataset.node === chosen);
  }
}

// ---- details -----------------------------------------------------------------------------------------------------
const PLACES = {base: "NNAPI", EX: "NNAPI-EX", DENSIFY: "DENSIFY", host: "host", refused: "refused by the device",
  none: "nothing of it is left at run time"};
const link = (i, text) => `<a data-go="${i}">${esc(text)}</a>`;
const row = (name, value) => value === "" || value === null ? "" : `<tr><th>${name}</th><td>${value}</td></tr>`;
function grid(q) {
  if (!q) return "";
  if ("scales" in q) {
    const shown = q.scales.slice(0, 8).map(s => s.toPrecision(4)).join(", ");
    return `${count(q.scales.length, "scale")} on axis ${q.axis}, ${least(q.scales).toPrecision(4)} to `
      + `${most(q.scales).toPrecision(4)}: ${shown}${q.scales.length > 8 ? ", ..." : ""}`;
  }
  return `scale ${q.scale.toPrecision(6)}, zero point ${q.zero}`;
}
function tensorRows(node, name) {
  const t = tensor(node, name);
  if (!t) return `<tr><td colspan="2">${esc(name)}</td></tr>`;
  const s = t.sparsity, levels = s ? s.levels.map(v => `${v.block ? "block " : ""}${v.format} ${v.size}`).join(", ") : "";
  const made = D.nodes.findIndex(n => n.subgraph === t.subgraph && n.outputs.includes(name));
  const read = (readers.get(`${t.subgraph}\n${name}`) || []).slice(0, 6).map(i => link(i, D.nodes[i].origin)).join(", ");
  return `<tr><th colspan="2">${esc(name)}</th></tr>` + row("type", esc(`${t.dtype} (${typed(t)})`)) + row("shape", esc(shaped(t)))
    + row("role", esc(t.role)) + row("bytes", t.bytes === null ? "open" : amount(t.bytes, "B")) + row("grid", esc(grid(t.quant)))
    + row("not zero", s ? `${(100 * s.density).toFixed(1)} %` : "") + row("levels", esc(levels))
    + row("saved", s && s.stored < s.dense ? amount(s.dense - s.stored, "B") : "")
    + row("made by", made >= 0 ? link(made, D.nodes[made].origin) : "") + row("read by", read);
}
function choose(i) {
  chosen = i;
  mark();
  const panel = $("details");
  panel.hidden = i === null;
  if (i === null) return;
  const n = D.nodes[i];
  const together = n.shared.length ? ` (its part of what is measured together with ${n.shared.map(esc).join(", ")})` : "";
  panel.innerHTML = `<button class="close" aria-label="close">\u00d7</button><h2>${esc(n.origin || n.operation)}</h2><table>`
    + row("is", esc(n.operation)) + row("runs on", PLACES[n.place]) + row("because", esc(n.why)) + row("change", esc(n.change))
    + row("time", n.seconds === null ? "" : micro(n.seconds) + together) + row("work", n.macs ? amount(n.macs, "MAC") : "")
    + row("weights", n.weights ? amount(n.weights, "B") : "") + row("in", esc(n.subgraph)) + "</table>"
    + (n.lowered.length ? "<h3>becomes</h3><table>" + n.lowered.map(v => `<tr><td>${esc(v.name)}</td><td>${esc(v.taken
      ? `${v.level ? `level ${v.level}` : v.kind}: ${v.rule}` : v.rule)}</td></tr>`).join("") + "</table>" : "")
    + `<h3>inputs</h3><table>${n.inputs.map(t => tensorRows(n, t)).join("")}</table>`
    + `<h3>outputs</h3><table>${n.outputs.map(t => tensorRows(n, t)).join("")}</table>`;
  panel.querySelector(".close").onclick = () => choose(null);
}
document.addEventListener("click", e => {
  const a = e.target.closest("[data-go]");
  if (a) { show("graph"); goto(+a.dataset.go); choose(+a.dataset.go); }
});

// ---- the other views -----------------------------------------------------------------------------------------------
function legend() {
  const there = new Set(D.nodes.map(n => n.place));
  const closed = D.blocks.length ? `<li>a closed block: ${byTime() ? "all of its time" : "what in it is furthest from the device"}</li>` : "";
  $("legend").innerHTML = (byTime()
    ? `<li>${D.profile ? `the redder the slower; a run takes ${micro(D.profile.seconds)}` : `not measured: ${esc(D.unmeasured)}`}</li>`
    : Object.keys(PLACES).filter(p => there.has(p)).map(p =>
      `<li><svg viewBox="0 0 14 14"><rect class="swatch ${p}" x="1" y="1" width="12" height="12" rx="3"/></svg>${PLACES[p]}</li>`).join("")) + closed;
}
function device() {
  const v = D.verdict, groups = new Map();
  D.nodes.forEach((n, i) => {
    if (!n.why) return;
    const key = `${n.place}\n${n.why}\n${n.change}`;
    groups.has(key) ? groups.get(key).push(i) : groups.set(key, [i]);
  });
  const lost = [...groups.values()].sort((a, b) => b.length - a.length).map(own => {
    const n = D.nodes[own[0]];
    return `<tr><td>${own.length}</td><td>${own.slice(0, 8).map(i => link(i, D.nodes[i].origin)).join(", ")}`
      + `${own.length > 8 ? ", ..." : ""}</td><td>${PLACES[n.place]}: ${esc(n.why)}</td><td>${esc(n.change)}</td></tr>`;
  }).join("");
  const needs = D.facts.reasons.map(r => `<tr><td>${Object.values(r.operations).reduce((a, b) => a + b, 0)}</td><td>`
    + `${Object.keys(r.operations).map(esc).join(", ")}</td><td>${esc(r.fact)}</td></tr>`).join("");
  $("device").innerHTML = `<p class="verdict ${v.refused ? "bad" : ""}">${esc(D.target)}: ${v.refused
    ? `${count(v.refused, "operation")} of the lowered model ${v.refused === 1 ? "is" : "are"} not taken, ${count(v.partitions, "partition")}`
    : `takes all of it, from level ${esc(v.level)} on`}</p>`
    + (lost ? `<h3>what it does not take</h3><table><tr><th>operations</th><th>where</th><th>why</th><th>what to change</th></tr>${lost}</table>` : "")
    + (needs ? `<h3>why it needs level ${esc(v.level)}</h3><table>${needs}</table>` : "");
}
function memory() {
  const m = D.memory;
  if (!m || !m.steps.length) { $("memory").innerHTML = "<p>Sizes follow from values: the arena is known in a run alone.</p>"; return; }
  const w = m.steps.length, h = Math.max(1, m.arena), peak = m.live.indexOf(most(m.live));
  const rects = m.stretches.map(b => {
    const from = Math.max(0, b.first), to = Math.min(w, b.last + 1);
    return `<rect x="${from}" y="${h - b.offset - b.bytes}" width="${Math.max(0.1, to - from)}" height="${b.bytes}" vector-effect="non-scaling-stroke">`
      + `<title>${esc(b.made_by)}: ${amount(b.bytes, "B")} at ${b.offset}, steps ${Math.max(0, b.first)} to ${Math.min(w - 1, b.last)}</title></rect>`;
  }).join("");
  const line = m.live.map((n, i) => `${i},${h - n} ${i + 1},${h - n}`).join(" ");
  $("memory").innerHTML = `<p>An arena of ${amount(m.arena, "B")} over ${count(w, "step")}; at the most ${amount(m.live[peak], "B")} in use, at `
    + `${esc(m.steps[peak])}. The line: what is in use. A box: an array, by its place and the steps that need it.</p>`
    + `<svg viewBox="0 0 ${w} ${h}" preserveAspectRatio="none" role="img" aria-label="the arena over time">${rects}<polyline points="${line}"/></svg>`;
}
const VIEWS = {graph: () => {}, device, memory}, made = new Set(["graph"]);
function show(name) {
  for (const tab of document.querySelectorAll("[role=tab]")) tab.setAttribute("aria-selected", tab.dataset.view === name);
  for (const id of Object.keys(VIEWS)) $(id).hidden = id !== name;
  document.querySelector(".tools").style.visibility = name === "graph" ? "" : "hidden";
  if (!made.has(name)) { made.add(name); VIEWS[name](); }
}
for (const tab of document.querySelectorAll("[role=tab]")) tab.onclick = () => show(tab.dataset.view);

// ---- begin ---------------------------------------------------------------------------------------------------------
const F = D.facts, source = F.made_from;
document.title = F.source;
$("title").innerHTML = `${esc(F.source)} <small>${esc(D.format)}${source ? `, ${esc(source.format)} ${esc(source.version)}` : ""}, ${amount(F.source_bytes, "B")}</small>`;
const facts = {"target": D.target, "needs level": F.level, "operations": D.nodes.length, "tensors": D.tensors.length,
  "weights": amount(F.weight_bytes, "B"), "arena": F.arena_bytes === null ? null : amount(F.arena_bytes, "B"),
  "work": F.macs === null ? null : amount(F.macs, "MAC"), "time": D.profile ? micro(D.profile.seconds) : null,
  "not on the device": D.verdict.refused || null, "inputs": F.inputs.map(p => `${p.name} ${p.dtype} ${shaped(p)}`).slice(0, 4).join("; "),
  "outputs": F.outputs.map(p => `${p.name} ${p.dtype} ${shaped(p)}`).slice(0, 4).join("; ")};
$("summary").innerHTML = Object.entries(facts).filter(([, v]) => v !== null && v !== "")
  .map(([k, v]) => `<div><dt>${k}</dt><dd>${esc(v)}</dd></div>`).join("");
legend();
shut(D.nodes.length > SMALL);
document.body.dataset.ready = "yes";
