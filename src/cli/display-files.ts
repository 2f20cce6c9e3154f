import { createHash } from 'node:crypto'
import type { CollectedFile, Display } from '../executor/index.ts'
import { pictureIn } from '../support/index.ts'

/**
 * The pictures among the displays of a run, as files: `display-1.png` is that of the first display.
 * @param prefix before each name
 */
export function displayFiles(displays: readonly Display[], prefix = ''): CollectedFile[] {
  return displays.flatMap(({ data }, index) => {
    const picture = pictureIn(data)
    if (picture === undefined) return []
    const { content, extension } = picture
    const sha256 = createHash('sha256').update(content).digest('hex')
    return [{ path: `${prefix}display-${index + 1}.${extension}`, size: content.length, sha256, content }]
  })
}

/** The pictures of a cell of a REPL: `cell-3-display-1.png`, in another branch than the first with the name of the branch before it. */
export function cellFiles(branch: string, number: number, displays: readonly Display[]): CollectedFile[] {
  const place = branch === 'main' ? '' : `${branch.replaceAll(/[^\w-]/g, '_')}-`
  return displayFiles(displays, `${place}cell-${number}-`)
}

/** A display as text for a person: its plain text, or the types that it has. */
export function displayText({ data }: Pick<Display, 'data'>): string {
  const text = data['text/plain'] ?? data['text/markdown'] ?? `[${Object.keys(data).join(', ')}]`
  return text.includes('\n') ? `\n${text}` : text
}
