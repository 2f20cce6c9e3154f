/** A Markdown table. A `|` or a line break in a cell is escaped. */
export function markdownTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [head, head.map(() => '---'), ...rows.map((row) => row.map(escapeCell))].map(tableRow).join('\n')
}

/** Formats text as Markdown code. */
export function code(text: string): string {
  return `\`${text}\``
}

function tableRow(cells: readonly string[]): string {
  const [first = ''] = cells
  return first === '---' ? `|${cells.join('|')}|` : `| ${cells.join(' | ')} |`
}

function escapeCell(text: string): string {
  return text.replaceAll(/(?<!\\)\|/g, String.raw`\|`).replaceAll(/\s*\n\s*/g, ' ')
}
