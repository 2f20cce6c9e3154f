import type { Budget } from './budget.ts'
import { type Phase, PHASES, type PhaseCost } from './budget-phases.ts'

const WIDTH = 860
const LEFT = 20
const BAR_WIDTH = WIDTH - 2 * LEFT
const BAR_HEIGHT = 30
const FLOOR_HEIGHT = 12
const COLORS: Readonly<Record<Phase, string>> = {
  host: '#4e79a7',
  crossing: '#bab0ac',
  broker: '#59a14f',
  child: '#f28e2b',
  script: '#e15759',
  end: '#b07aa1',
  wipe: '#76b7b2',
  proof: '#edc948',
  spare: '#d7b5a6',
}

/** Draws the budget of a run as SVG: its time, its processor time and its page faults, each beside the floor's. */
export function drawBudget({ phases, processes, run, floor }: Budget): string {
  if (typeof phases === 'string') throw new Error(`there is no picture without the parts of a run: ${phases}`)
  const { host, broker, zygote, child, floor: base } = processes
  const all = [host, broker, zygote, child]
  const cpuMs = all.reduce((total, part) => total + part.cpuMs, 0)
  const faults = all.reduce((total, part) => total + part.faults, 0)
  const bars = [
    drawBar('Time from call to result', 'ms', run.p50, floor.p50, pick(phases, 'wallMs')),
    drawBar('Processor time of all processes', 'ms', cpuMs, base.cpuMs, pick(phases, 'cpuMs')),
    drawBar('Page faults of all processes', '', faults, base.faults, pick(phases, 'faults')),
  ]
  const step = 104
  const legendAt = 40 + bars.length * step
  const height = legendAt + Object.keys(PHASES).length * 20 + 34
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="sans-serif" font-size="13">
<rect width="${WIDTH}" height="${height}" fill="#fff"/>
<text x="${LEFT}" y="24" font-size="16" font-weight="bold">What one warm run costs, and the floor: one fork of a warm Python</text>
${bars.map((bar, at) => `<g transform="translate(0 ${40 + at * step})">\n${bar}\n</g>`).join('\n')}
<g transform="translate(0 ${legendAt})">
${drawLegend()}
</g>
</svg>
`
}

function pick(phases: Readonly<Record<Phase, PhaseCost>>, part: keyof PhaseCost): [Phase, number][] {
  return Object.entries(phases).map(([phase, cost]) => [phase as Phase, cost[part]])
}

/** Draws the parts of a total, and the floor below it at the same scale. Tracing makes the parts longer, so their shares count. */
function drawBar(title: string, unit: string, total: number, floor: number, parts: [Phase, number][]): string {
  const sum = parts.reduce((before, [, value]) => before + value, 0)
  const show = (value: number): string => (unit === 'ms' ? `${value.toFixed(2)} ms` : value.toFixed(0))
  let x = LEFT
  const pieces = parts.map(([phase, value]) => {
    const width = (value / sum) * BAR_WIDTH
    const label = show((value / sum) * total)
    const fits = width > label.length * 7.5
    const piece =
      `<rect x="${x.toFixed(1)}" y="26" width="${width.toFixed(1)}" height="${BAR_HEIGHT}" fill="${COLORS[phase]}"/>` +
      (fits ? `<text x="${(x + width / 2).toFixed(1)}" y="46" text-anchor="middle">${label}</text>` : '')
    x += width
    return piece
  })
  const floorWidth = Math.min(floor / total, 1) * BAR_WIDTH
  return [
    `<text x="${LEFT}" y="18"><tspan font-weight="bold">${title}: ${show(total)}</tspan>, ${(total / floor).toFixed(1)} times the floor</text>`,
    ...pieces,
    `<rect x="${LEFT}" y="${28 + BAR_HEIGHT}" width="${floorWidth.toFixed(1)}" height="${FLOOR_HEIGHT}" fill="#333"/>`,
    `<text x="${(LEFT + floorWidth + 6).toFixed(1)}" y="${39 + BAR_HEIGHT}" font-size="12">floor: ${show(floor)}</text>`,
  ].join('\n')
}

function drawLegend(): string {
  return Object.entries(PHASES)
    .map(
      ([phase, what], at) =>
        `<rect x="${LEFT}" y="${at * 20 + 8}" width="12" height="12" fill="${COLORS[phase as Phase]}"/>` +
        `<text x="${LEFT + 20}" y="${at * 20 + 19}">${what.replaceAll('`', '')}</text>`,
    )
    .join('\n')
}
