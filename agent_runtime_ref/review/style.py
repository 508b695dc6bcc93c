"""How the HTML report looks: one column on a phone, contents beside the text on a desk, ink on paper."""

from __future__ import annotations

__all__ = ["STYLE"]

STYLE = """
:root {
  color-scheme: light dark;
  --paper: #fdfdfc; --raised: #ffffff; --ink: #1d2126; --soft: #59626c; --line: #dfe2e5; --faint: #f3f4f3;
  --link: #0b5a78; --in: #17663a; --out: #a12a22; --amber: #845500;
  --sans: system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif;
  --mono: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #15181b; --raised: #1b1f23; --ink: #e6e8ea; --soft: #a3acb5; --line: #32383e; --faint: #20252a;
    --link: #7cc4e0; --in: #7ed0a0; --out: #f0988f; --amber: #e3b565;
  }
}
* { box-sizing: border-box; }
html { scroll-padding-top: 1rem; -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 1rem/1.55 var(--sans);
  overflow-wrap: anywhere; }
a { color: var(--link); text-decoration-thickness: 1px; text-underline-offset: 0.18em; }
a:focus-visible, summary:focus-visible { outline: 2px solid var(--link); outline-offset: 2px;
  border-radius: 2px; }
code, .id { font-family: var(--mono); font-size: 0.875em; }
.skip { position: absolute; left: -99rem; }
.skip:focus { left: 1rem; top: 1rem; background: var(--raised); padding: 0.5rem 1rem; z-index: 1; }
.page { max-width: 74rem; margin: 0 auto; padding: 3rem 2rem 5rem; }
h1, h2, h3, h4 { line-height: 1.25; text-wrap: balance; margin: 0; }
h1 { font-size: 2.1rem; letter-spacing: -0.015em; font-weight: 650; }
h2 { font-size: 1.45rem; letter-spacing: -0.01em; font-weight: 650; }
h3 { font-size: 1.12rem; font-weight: 650; }
h4 { font-size: 0.8125rem; font-weight: 650; }
p { margin: 0; }
.kicker { color: var(--soft); font-size: 0.875rem; margin-bottom: 0.4rem; }
.glance { font-size: 1.06rem; max-width: 46rem; margin-top: 1rem; }
.identity { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: 0.2rem 1.25rem;
  margin: 1.4rem 0 0; font-size: 0.875rem; }
dt { color: var(--soft); }
dd { margin: 0; }
header { padding-bottom: 2.25rem; border-bottom: 1px solid var(--line); }
.body { display: grid; grid-template-columns: 15rem minmax(0, 1fr); gap: 3.5rem; }
nav { position: sticky; top: 0; align-self: start; max-height: 100vh; overflow-y: auto; padding: 2.25rem 0;
  font-size: 0.875rem; }
nav h2 { font-size: 0.8125rem; color: var(--soft); margin-bottom: 0.5rem; letter-spacing: 0; }
nav ul { list-style: none; margin: 0; padding: 0; }
nav li { margin: 0.3rem 0; }
nav a { color: inherit; text-decoration: none; }
nav a:hover { color: var(--link); text-decoration: underline; }
nav ul ul { margin: 0.2rem 0 0.7rem; padding-left: 0.8rem; border-left: 1px solid var(--line);
  color: var(--soft); }
nav ul ul li { margin: 0.12rem 0; font-family: var(--mono); font-size: 0.78rem; }
main { min-width: 0; }
section { padding-top: 2.25rem; }
section > p { color: var(--soft); max-width: 46rem; margin-top: 0.4rem; }
table { width: 100%; table-layout: fixed; border-collapse: collapse; margin-top: 1.1rem;
  font-size: 0.925rem; }
th { text-align: left; font-weight: 600; font-size: 0.8125rem; color: var(--soft);
  border-bottom: 1px solid var(--ink); padding: 0.35rem 1rem 0.35rem 0; }
td { vertical-align: top; border-bottom: 1px solid var(--line); padding: 0.55rem 1rem 0.55rem 0; }
th:last-child, td:last-child { padding-right: 0; }
td small { display: block; color: var(--soft); font-size: 0.8125rem; margin-top: 0.15rem; }
.w1 { width: 6.5rem; } .w2 { width: 8.5rem; } .w3 { width: 12.5rem; } .w4 { width: 18.5rem; }
.refs a { text-decoration: none; }
.refs a:hover { text-decoration: underline; }
.refs { display: flex; flex-wrap: wrap; gap: 0.15rem 0.8rem; list-style: none; margin: 0; padding: 0; }
.severity { font-size: 0.8125rem; font-weight: 600; }
.critical, .error { color: var(--out); }
.high, .warning { color: var(--amber); }
.medium, .low { color: var(--soft); }
.severity::before { content: ""; display: inline-block; width: 0.55em; height: 0.55em; border-radius: 50%;
  margin-right: 0.45em; border: 0.13em solid currentColor; vertical-align: 0.04em; }
.critical::before, .error::before, .high::before, .warning::before { background: currentColor; }
.good { color: var(--in); } .bad { color: var(--out); }
article { margin-top: 2rem; padding-top: 1.5rem; border-top: 1px solid var(--line); }
article:target h3 { text-decoration: underline; text-decoration-color: var(--link);
  text-underline-offset: 0.25em; }
.above { display: flex; flex-wrap: wrap; justify-content: space-between; gap: 0.1rem 1rem;
  margin-bottom: 0.25rem; }
.above .id { color: var(--soft); text-decoration: none; }
.above a.id:hover { text-decoration: underline; }
.lead { margin-top: 0.45rem; max-width: 46rem; }
.effect { margin-top: 0.45rem; color: var(--soft); font-size: 0.925rem; max-width: 46rem; }
.sides { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 1.5rem; margin-top: 1.1rem; }
.side { border-top: 2px solid var(--in); padding-top: 0.5rem; font-size: 0.9rem; }
.side.out { border-top-color: var(--out); }
.side h4 { color: var(--in); }
.side.out h4 { color: var(--out); }
.side ul { list-style: none; margin: 0.4rem 0 0; padding: 0; }
.side li { margin-top: 0.6rem; }
.side li span { display: block; color: var(--soft); font-size: 0.8125rem; }
.facts { display: grid; grid-template-columns: 6.5rem minmax(0, 1fr); gap: 0.35rem 1rem; margin: 1.2rem 0 0;
  font-size: 0.875rem; }
.facts .values { display: grid; grid-template-columns: minmax(0, max-content) minmax(6rem, 1fr);
  gap: 0.1rem 1.25rem;
  margin: 0; }
.facts .values dt { color: inherit; font-family: var(--mono); font-size: 0.8125rem; }
summary { cursor: pointer; }
details ul { margin: 0.4rem 0 0; padding-left: 1.1rem; font-family: var(--mono); font-size: 0.78rem; }
footer { margin-top: 3.5rem; padding-top: 1rem; border-top: 1px solid var(--line); color: var(--soft);
  font-size: 0.8125rem; }
@media (max-width: 62rem) {
  .page { padding: 1.75rem 1.15rem 3rem; }
  .body { display: block; }
  nav { position: static; max-height: none; padding: 1.5rem 0 0; }
  nav ul ul { display: none; }
  nav > ul { display: flex; flex-wrap: wrap; gap: 0.2rem 1.25rem; }
}
@media (max-width: 40rem) {
  h1 { font-size: 1.6rem; }
  .identity { grid-template-columns: 1fr; gap: 0; }
  .identity dd { margin-bottom: 0.5rem; }
  table, tbody, tr, td { display: block; }
  thead { display: none; }
  tr { border-bottom: 1px solid var(--line); padding: 0.8rem 0; }
  tbody tr:first-child { border-top: 1px solid var(--ink); }
  td { border: 0; padding: 0.05rem 0; }
  td[data-label]::before { content: attr(data-label) ": "; color: var(--soft); font-size: 0.8125rem; }
  td[data-label] > .refs { display: inline-flex; vertical-align: top; }
  .sides { grid-template-columns: 1fr; gap: 1rem; }
  .facts { grid-template-columns: 1fr; gap: 0; }
  .facts > dd { margin-bottom: 0.6rem; }
  .facts .values { display: block; }
  .facts .values dt, .facts .values dd { display: inline; }
  .facts .values dt::after { content: ": "; }
  .facts .values dd::after { content: "\\A"; white-space: pre; }
}
@media print {
  :root { --paper: #fff; --raised: #fff; --ink: #000; --soft: #444; --line: #bbb; --link: #000;
    --in: #0d4d2a;
    --out: #7d1a13; --amber: #5c3b00; color-scheme: light; }
  @page { margin: 18mm 16mm; }
  body { font-size: 9.5pt; }
  .page { max-width: none; padding: 0; }
  .body { display: block; }
  nav, .skip { display: none; }
  h2, h3, h4, .above { break-after: avoid; }
  tr, .side li { break-inside: avoid; }
  details::details-content { content-visibility: visible; block-size: auto; }
}
"""
