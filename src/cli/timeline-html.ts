import { msText } from './figures.ts'
import { html, type Html } from './html.ts'
import type { Span, SpanKind, Timeline, TimelineRow } from './timeline.ts'

/** The minimum width of a span, so that it can be seen, in percent. */
const MIN_WIDTH = 0.4
const WORDS: Readonly<Record<SpanKind, string>> = {
  model: 'model writes',
  check: 'script is checked',
  review: 'person decides',
  run: 'script runs',
  call: 'tool call',
}

/** A bar for each attempt on one axis of time, tool calls below it. */
export function timelineHtml({ totalMs, rows }: Timeline): Html {
  if (rows.length === 0 || totalMs === 0) return html``
  return html`<section class="timeline" aria-label="Timeline">
    <h2>Where the time went</h2>
    ${rows.map((row) => rowHtml(row, totalMs))}
    <div class="axis">
      <span></span><span class="ends"><span>0</span><span>${msText(totalMs)}</span></span>
    </div>
    <p class="legend">
      ${Object.entries(WORDS).map(([kind, words]) => html`<span><i class="swatch ${kind}"></i>${words}</span>`)}
    </p>
  </section> `
}

function rowHtml({ step, attempt, spans }: TimelineRow, totalMs: number): Html {
  const name = step === null ? `attempt ${attempt}` : `step ${step}.${attempt}`
  return html`<div class="axis">
    <span class="row-name">${name}</span
    ><svg width="100%" height="30" role="img" aria-label="${name}: ${spans.length} spans">
      <rect class="track" width="100%" height="14" rx="3" />
      ${spans.map((span) => spanHtml(span, totalMs))}
    </svg>
  </div> `
}

function spanHtml({ kind, from, ms, name }: Span, totalMs: number): Html {
  const width = Math.max(MIN_WIDTH, (100 * ms) / totalMs)
  const x = Math.min((100 * from) / totalMs, 100 - width)
  const [y, height] = kind === 'call' ? [17, 6] : [0, 14]
  const words = `${name ?? WORDS[kind]}, ${msText(ms)}`
  return html`<rect class="${kind}" x="${x.toFixed(3)}%" y="${y}" width="${width.toFixed(3)}%" height="${height}" rx="2"
    ><title>${words}</title></rect
  >`
}
