import type { Entry } from './campaign.ts'

/** The outcomes of all faults of one kind on one engine. */
export interface KindSummary {
  readonly engine: string
  readonly name: string
  readonly count: number
  /** Outcomes of the runs that were hit. */
  readonly said: readonly string[]
  /** Outcomes of the runs that began during the fault. */
  readonly meanwhile: readonly string[]
  readonly worstSettleMs: number
  readonly boundMs: number
  readonly boundWhy: string
  readonly worstRecoveryMs: number
  readonly left: number
  readonly unexpected: number
}

/** Summarizes by engine and kind, sorted by name. */
export function summaryOf(entries: readonly Entry[]): readonly KindSummary[] {
  const groups = Map.groupBy(entries, ({ engine, name }) => `${engine}\t${name}`)
  return [...groups]
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .flatMap(([, group]) => {
      const [first] = group
      if (first === undefined) return []
      const { engine, name, boundMs, boundWhy } = first
      return {
        engine,
        name,
        count: group.length,
        said: [...new Set(group.map(({ said }) => said.split(':', 1)[0] ?? ''))],
        meanwhile: [...new Set(group.flatMap((one) => Object.keys(one.meanwhile)))].toSorted(),
        worstSettleMs: Math.round(Math.max(...group.map(({ settleMs }) => settleMs))),
        boundMs,
        boundWhy,
        worstRecoveryMs: Math.round(Math.max(...group.map(({ recoveryMs }) => recoveryMs))),
        left: group.reduce((sum, { left }) => sum + left.length, 0),
        unexpected: group.filter(({ breaches }) => breaches.length > 0).length,
      }
    })
}

/** Formats the summaries as a Markdown table. */
export function tableOf(summaries: readonly KindSummary[]): string {
  const head = [
    'engine',
    'fault',
    'count',
    'the run that was hit',
    'runs that began meanwhile',
    'worst settle (ms)',
    'bound (ms)',
    'good again after (worst, ms)',
    'left',
    'unexpected',
  ]
  const rows = summaries.map((one) => [
    one.engine,
    one.name,
    one.count,
    one.said.map((word) => `\`${word}\``).join(', '),
    one.meanwhile.map((word) => `\`${word}\``).join(', ') || 'none',
    one.worstSettleMs.toLocaleString('en'),
    `${one.boundMs.toLocaleString('en')} (${one.boundWhy})`,
    one.worstRecoveryMs.toLocaleString('en'),
    one.left,
    one.unexpected,
  ])
  return [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}
