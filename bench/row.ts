/** One line of the table: what was measured, the figure, and the bound that it is held against. */
export interface Row {
  readonly what: string
  readonly figure: string
  /** The bound in words, or nothing where the figure is only reported. */
  readonly bound?: string
  readonly met?: boolean
}

/** A figure that must not be over a bound, both as ratios. */
export function ratioRow(what: string, figure: string, ratio: number, most: number, of: string): Row {
  return { what, figure: `${figure} = ${ratio.toFixed(2)}x ${of}`, bound: `<= ${most}x`, met: ratio <= most }
}

/** Milliseconds for people. */
export function ms(value: number): string {
  return value >= 100 ? `${value.toFixed(0)} ms` : `${value.toFixed(2)} ms`
}

/** The rows as a Markdown table. */
export function table(rows: readonly Row[]): string {
  const lines = rows.map(
    ({ what, figure, bound, met }) =>
      `| ${what} | ${figure} | ${bound ?? 'reported'} | ${met === undefined ? '' : met ? 'met' : '**not met**'} |`,
  )
  return ['| what | figure | bound | |', '|---|---|---|---|', ...lines].join('\n')
}
