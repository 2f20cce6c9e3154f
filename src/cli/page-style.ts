import { Html } from './html.ts'

/** The style sheet of `show --html`, for light and dark. */
export const PAGE_STYLE: Html = Html.trust(`
:root {
  color-scheme: light dark;
  --back: #f6f7f9; --card: #fff; --ink: #1c2128; --soft: #5c6670; --line: #dfe3e8; --code: #f3f5f7;
  --good: #14713d; --good-back: #dff5e7; --bad: #b3261e; --bad-back: #fde8e6; --warn: #8a5300; --warn-back: #fdf0d8;
  --py-word: #8b2fc9; --py-text: #1a6e39; --py-number: #9a4a00; --py-name: #1257b0;
  --model: #7a5af0; --check: #d08a00; --review: #c2410c; --run: #2376d2; --call: #0e9384;
}
@media (prefers-color-scheme: dark) {
  :root {
    --back: #12151a; --card: #1b2027; --ink: #e4e8ed; --soft: #98a3af; --line: #303842; --code: #151a20;
    --good: #6ad79a; --good-back: #16331f; --bad: #ff8f86; --bad-back: #3f1b19; --warn: #f0bd62; --warn-back: #382a10;
    --py-word: #c79bf2; --py-text: #8fd19e; --py-number: #e8b07a; --py-name: #82b7f5;
    --model: #9a82ff; --check: #e0a83a; --review: #f0875a; --run: #57a2f3; --call: #36bfae;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--back); color: var(--ink);
  font: 15px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif;
}
main { max-width: 1000px; margin: 0 auto; padding: 32px 20px 64px; }
h1 { font-size: 22px; line-height: 1.35; margin: 6px 0 18px; white-space: pre-wrap; overflow-wrap: anywhere; }
h2 { font-size: 16px; margin: 0 0 12px; }
h3 { font-size: 13px; margin: 18px 0 6px; color: var(--soft); font-weight: 600; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 18px 20px; margin: 16px 0; }
code, pre, .mono { font: 13px/1.55 ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; }
pre { margin: 0; padding: 10px 12px; background: var(--code); border-radius: 8px; white-space: pre-wrap; overflow-wrap: anywhere; }
.id { color: var(--soft); font-size: 13px; }
.pill { display: inline-block; padding: 1px 10px; border-radius: 99px; font-size: 13px; font-weight: 600; white-space: nowrap; max-width: 100%; overflow: hidden; text-overflow: ellipsis; vertical-align: bottom; }
.good { color: var(--good); background: var(--good-back); }
.bad { color: var(--bad); background: var(--bad-back); }
.warn { color: var(--warn); background: var(--warn-back); }
dl { display: grid; grid-template-columns: fit-content(40%) 1fr; gap: 3px 18px; margin: 0; }
dt { color: var(--soft); overflow-wrap: anywhere; }
dd { margin: 0; overflow-wrap: anywhere; }
h4 { font-size: 13px; margin: 12px 0 4px; font-weight: 600; }
h4:first-child { margin-top: 0; }
.wide { overflow-x: auto; }
.records { width: auto; }
.records td { font-size: 13px; min-width: 40px; white-space: pre-wrap; }
.records .number { text-align: right; font-variant-numeric: tabular-nums; }
.data pre { padding: 0; background: none; }
.head { display: flex; gap: 10px; align-items: baseline; flex-wrap: wrap; margin-bottom: 12px; }
.head h2 { margin: 0; }
.head span:last-child { color: var(--soft); font-size: 13px; }
.script { margin: 14px 0 0; padding: 10px 0; background: var(--code); border-radius: 8px; overflow-x: auto; }
.script > div { display: grid; grid-template-columns: 52px 1fr; min-width: max-content; }
.script i { font: 13px/1.55 ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; color: var(--soft); text-align: right; padding-right: 14px; user-select: none; opacity: .75; }
.script code { white-space: pre; padding-right: 14px; }
.script .failed { background: var(--bad-back); box-shadow: inset 4px 0 0 var(--bad); }
.script .failed i { color: var(--bad); opacity: 1; font-weight: 700; }
.script .violation { color: var(--bad); }
.script .violation small { font-size: 12px; color: var(--soft); }
.py-word { color: var(--py-word); }
.py-text { color: var(--py-text); }
.py-number { color: var(--py-number); }
.py-name { color: var(--py-name); font-weight: 600; }
.py-comment { color: var(--soft); font-style: italic; }
table { border-collapse: collapse; width: 100%; }
td, th { text-align: left; vertical-align: top; padding: 4px 14px 4px 0; border-top: 1px solid var(--line); overflow-wrap: anywhere; }
th { color: var(--soft); font-weight: 500; font-size: 13px; border-top: 0; white-space: nowrap; }
td { font-size: 14px; }
td.mono { min-width: 170px; font-size: 13px; }
td.ms { white-space: nowrap; text-align: right; font-variant-numeric: tabular-nums; }
td.at { white-space: nowrap; color: var(--soft); }
td.refused { color: var(--bad); }
.error { margin: 14px 0 0; padding: 10px 12px; border-radius: 8px; white-space: pre-wrap; overflow-wrap: anywhere; }
details { margin-top: 12px; }
summary { cursor: pointer; color: var(--soft); font-size: 13px; font-weight: 600; }
summary + pre { margin-top: 6px; }
.axis { display: grid; grid-template-columns: 88px 1fr; align-items: start; gap: 8px; }
.axis svg { display: block; }
.row-name, .ends, .legend { color: var(--soft); font-size: 12px; line-height: 15px; }
.ends { display: flex; justify-content: space-between; }
.legend { display: flex; gap: 18px; flex-wrap: wrap; margin: 10px 0 0 96px; }
.swatch { display: inline-block; width: 10px; height: 10px; border-radius: 2px; margin-right: 6px; }
.track { fill: var(--code); }
.model { fill: var(--model); background: var(--model); }
.check { fill: var(--check); background: var(--check); }
.review { fill: var(--review); background: var(--review); }
.run { fill: var(--run); background: var(--run); }
.call { fill: var(--call); background: var(--call); }
figure { margin: 10px 0 18px; }
figure img { max-width: 100%; height: auto; background: #fff; border-radius: 8px; }
figure iframe { width: 100%; height: 320px; border: 1px solid var(--line); border-radius: 8px; background: #fff; }
figcaption, .left-out { color: var(--soft); font-size: 13px; margin: 4px 0 0; white-space: pre-wrap; overflow-wrap: anywhere; }
footer { color: var(--soft); font-size: 12px; text-align: center; margin-top: 28px; }
@media (max-width: 600px) { dl { grid-template-columns: 1fr; } dd { margin-bottom: 6px; } }
@media print { body { background: none; } section { break-inside: avoid; } }
`)
