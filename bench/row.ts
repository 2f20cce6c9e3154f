/** One row of the table: the measured quantity, its figure, and its target. */
export interface Row {
  readonly what: string
  /** One figure, or one for each column of the table. */
  readonly figure: string | readonly string[]
  /** The target as text; absent if the figure is only reported. */
  readonly bound?: string
  readonly met?: boolean
}

/** Makes a row for a ratio that must not exceed a target. */
export function ratioRow(what: string, figure: string, ratio: number, most: number, of: string): Row {
  return { what, figure: `${figure} = ${ratio.toFixed(2)}x ${of}`, bound: `<= ${most}x`, met: ratio <= most }
}

/** Formats milliseconds. */
export function ms(value: number): string {
  return value >= 100 ? `${value.toFixed(0)} ms` : `${value.toFixed(2)} ms`
}

/** Formats rows as a Markdown table with these titles for the columns of figures. */
export function table(rows: readonly Row[], titles: readonly string[] = ['figure']): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
  const head = ['what', ...titles, 'target', '']
  const verdict = (met: boolean | undefined): string => (met === undefined ? '' : met ? 'met' : '**not met**')
  return [
    line(head),
    `|${'---|'.repeat(head.length)}`,
    ...rows.map(({ what, figure, bound, met }) =>
      line([what, ...(typeof figure === 'string' ? [figure] : figure), bound ?? 'reported', verdict(met)]),
    ),
  ].join('\n')
}
