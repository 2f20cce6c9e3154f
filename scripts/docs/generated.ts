import { caps } from './caps.ts'
import { differences } from './differences.ts'
import { engineTable } from './engines.ts'
import { errorCodes } from './errors.ts'
import { optionSections } from './options.ts'
import { scriptHelpers } from './script-helpers.ts'
import { outcomes, taskOutcomes, warningCodes } from './outcomes.ts'
import { pythonWriters } from './python-writers.ts'
import { roomsTable } from './rooms.ts'
import type { GeneratedSection } from './section.ts'
import { sessionStates } from './session-states.ts'
import { testedTable } from './tested.ts'

/**
 * Every generated section of the docs. To add one: put its two markers on the page, add a row here with a function that
 * makes the Markdown from the table in `src/` or `harness/`, and run `npm run docs`.
 */
export const GENERATED: readonly GeneratedSection[] = [
  { page: 'docs/engines.md', name: 'engines', text: engineTable },
  { page: 'docs/engines.md', name: 'tested', text: testedTable },
  { page: 'docs/limitations/reuse.md', name: 'differences', text: differences },
  { page: 'docs/errors.md', name: 'error-codes', text: errorCodes },
  ...optionSections(),
  { page: 'ARCHITECTURE.md', name: 'rooms', text: roomsTable },
  { page: 'docs/protocol.md', name: 'script-helpers', text: scriptHelpers },
  { page: 'docs/protocol.md', name: 'caps', text: caps },
  { page: 'docs/redaction.md', name: 'python-writers', text: pythonWriters },
  { page: 'docs/sessions.md', name: 'session-states', text: sessionStates },
  { page: 'docs/cli.md', name: 'outcomes', text: outcomes },
  { page: 'docs/cli.md', name: 'task-outcomes', text: taskOutcomes },
  { page: 'docs/cli.md', name: 'warning-codes', text: warningCodes },
]
