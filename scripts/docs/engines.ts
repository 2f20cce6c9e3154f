import { ENGINES, type EngineTable } from '../../src/engines/index.ts'
import { code, markdownTable } from './table.ts'

/** The table of engines. */
export function engineTable(engines: EngineTable = ENGINES): string {
  const rows = Object.entries(engines).map(
    ([name, { wall, machines, python, workspaces, programs, sessions, checkpoints, pages, flags }]) => [
      code(name),
      wall,
      machines,
      python,
      workspaces,
      programs,
      sessions,
      checkpoints,
      Object.keys(flags).map(code).join(', ') || 'none',
      pages.map((page) => `[${page}](${page})`).join(', '),
    ],
  )
  return markdownTable(
    [
      'engine',
      'what holds scripts',
      'where it works',
      'its Python',
      'workspaces',
      'programs in them',
      'sessions',
      'checkpoints of them',
      'flags of its own',
      'pages',
    ],
    rows,
  )
}
