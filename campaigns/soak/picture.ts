import { ticksUpTo } from './axis.ts'
import type { Sample } from './sample.ts'
import type { Summary } from './summary.ts'

/** One line of a panel. */
interface Series {
  readonly label: string
  /** A class in STYLE. */
  readonly colour: 'a' | 'b' | 'c'
  readonly value: (sample: Sample) => number
}

interface Panel {
  readonly title: string
  readonly top: number
  readonly series: readonly Series[]
}

const WIDTH = 860
const HEIGHT = 560
const LEFT = 64
const RIGHT = 24
const PANEL_HEIGHT = 170

const PANELS: readonly Panel[] = [
  {
    title: 'memory of the host process, MiB',
    top: 78,
    series: [
      { label: 'resident, most under load', colour: 'a', value: ({ peakRssMiB }) => peakRssMiB },
      { label: 'resident at the pause', colour: 'b', value: ({ rssMiB }) => rssMiB },
      { label: 'held after a collection', colour: 'c', value: ({ heldMiB }) => heldMiB },
    ],
  },
  {
    title: 'latency of a run that only answers, ms',
    top: 326,
    series: [
      { label: 'p99', colour: 'a', value: ({ p99Ms }) => p99Ms },
      { label: 'p50', colour: 'b', value: ({ p50Ms }) => p50Ms },
    ],
  },
]

const STYLE = `
    text { font: 13px system-ui, sans-serif; fill: #1f2328; }
    .small { font-size: 11px; fill: #59636e; }
    .title { font-size: 15px; font-weight: 600; }
    .paper { fill: #ffffff; }
    .grid { stroke: #d1d9e0; stroke-width: 1; }
    .line { fill: none; stroke-width: 1.75; stroke-linejoin: round; }
    .a { stroke: #bc4c00; } .b { stroke: #0969da; } .c { stroke: #1a7f37; }
    @media (prefers-color-scheme: dark) {
      text { fill: #f0f6fc; } .small { fill: #9198a1; } .paper { fill: #0d1117; } .grid { stroke: #3d444d; }
      .a { stroke: #f0883e; } .b { stroke: #4493f8; } .c { stroke: #3fb950; }
    }`

/** Memory and latency of a soak over its time, as an SVG that is readable on light and on dark paper. */
export function pictureOf({ options, machine, versions, samples, durationSec }: Summary): string {
  const minutes = Math.max(durationSec / 60, 1 / 60)
  const title = `Soak of the engine ${options.engine}: ${round(options.minutes)} minutes, ${options.concurrency} runs at once`
  const parts = [
    `<rect class="paper" width="${WIDTH}" height="${HEIGHT}"/>`,
    text(LEFT, 26, title, 'title'),
    text(LEFT, 46, `${machine}; ${versions}`, 'small'),
    ...PANELS.flatMap((panel) => drawPanel(panel, samples, samples.at(-1)?.atSec ?? minutes * 60)),
  ]
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${escapeXml(title)}">
  <style>${STYLE}
  </style>
  ${parts.join('\n  ')}
</svg>
`
}

function drawPanel(panel: Panel, samples: readonly Sample[], seconds: number): string[] {
  const values = panel.series.flatMap(({ value }) => samples.map(value)).filter(Number.isFinite)
  const ticks = ticksUpTo(Math.max(0, ...values))
  const minuteTicks = ticksUpTo(seconds / 60).filter((minute) => minute <= seconds / 60 + 1e-9)
  const bottom = panel.top + PANEL_HEIGHT
  const x = (minute: number): number => LEFT + (minute / (seconds / 60)) * (WIDTH - LEFT - RIGHT)
  const y = (value: number): number => bottom - (value / (ticks.at(-1) ?? 1)) * PANEL_HEIGHT
  return [
    text(LEFT, panel.top - 12, panel.title),
    ...ticks.flatMap((tick) => [
      `<line class="grid" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${round(y(tick))}" y2="${round(y(tick))}"/>`,
      text(LEFT - 8, y(tick) + 4, String(tick), 'small', 'end'),
    ]),
    ...minuteTicks.map((minute) => text(x(minute), bottom + 18, String(minute), 'small', 'middle')),
    text(WIDTH - RIGHT, bottom + 36, 'time, minutes', 'small', 'end'),
    ...panel.series.flatMap(({ label, colour, value }, index) => [
      `<path class="line ${colour}" d="${pathOf(samples, value, x, y)}"/>`,
      `<line class="line ${colour}" x1="${LEFT + index * 200}" x2="${LEFT + 18 + index * 200}" y1="${bottom + 32}" y2="${bottom + 32}"/>`,
      text(LEFT + 24 + index * 200, bottom + 36, label, 'small'),
    ]),
  ]
}

/** A sample without the value (no quick run in that minute) leaves a gap. */
function pathOf(
  samples: readonly Sample[],
  value: Series['value'],
  x: (minute: number) => number,
  y: (value: number) => number,
): string {
  let pen = 'M'
  return samples
    .flatMap((sample) => {
      // NaN is null in JSON.
      if (!Number.isFinite(value(sample))) {
        pen = 'M'
        return []
      }
      const step = `${pen}${round(x(sample.atSec / 60))} ${round(y(value(sample)))}`
      pen = 'L'
      return [step]
    })
    .join(' ')
}

function text(x: number, y: number, content: string, style = '', anchor = 'start'): string {
  const given = style === '' ? '' : ` class="${style}"`
  return `<text x="${round(x)}" y="${round(y)}" text-anchor="${anchor}"${given}>${escapeXml(content)}</text>`
}

function escapeXml(content: string): string {
  return content.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}
