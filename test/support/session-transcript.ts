import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { CellResult, Session } from '../../src/index.ts'
import { withSection } from './page-section.ts'

export const PAGE_OF_SESSIONS: string = join(import.meta.dirname, '../../docs/sessions.md')
const MARKERS = { begin: '<!-- transcript -->', end: '<!-- end of the transcript -->' }

const CELLS = [
  'rows = [3, 1, 2]\nsorted(rows)',
  'rows.append(4)\nwhile True: pass',
  'rows.append(5)\nimport ctypes; ctypes.string_at(0)',
  'rows.append(6)\nb = bytearray(900 << 20)',
  'rows.append(7)\nimport os\nwhile True:\n    try: os.fork()\n    except OSError: pass',
  'rows',
]

/** The page of the docs with the transcript of a session that survives a timeout, a crash, the memory limit and a fork bomb. */
export async function pageWithTranscript(session: Session): Promise<string> {
  const shown: string[] = []
  for (const cell of CELLS) {
    // The others end by themselves, however slow the machine is.
    const timeoutSec = cell.includes('while True') ? 1 : 60
    shown.push(turn(cell, await session.run(cell, { timeoutSec })))
  }
  return withSection(readFileSync(PAGE_OF_SESSIONS, 'utf8'), MARKERS, `\`\`\`\n${shown.join('\n')}\n\`\`\``)
}

function turn(cell: string, { number, value, status, state, checkpoint }: CellResult): string {
  const lines = cell.split('\n').map((line, index) => `${index === 0 ? `[${number}] ` : '    '}${line}`)
  const end = state === 'kept' ? JSON.stringify(value) : `${status}: ${state}`
  return [...lines, `    # ${end}, checkpoint ${checkpoint.grade}`].join('\n')
}
