import type { Entrance } from './entrance.ts'
import { FILE_ENTRANCES } from './files.ts'
import { HTTP_ENTRANCES } from './http.ts'
import { JOURNAL_ENTRANCES } from './journals.ts'
import { MODEL_ENTRANCES } from './model.ts'
import { SANDBOX_ENTRANCES } from './sandbox.ts'
import { SCRIPT_ENTRANCES } from './script.ts'
import { TOOL_ENTRANCES } from './tools.ts'

/** Every way for hostile bytes into the host. */
export const ENTRANCES: readonly Entrance[] = [
  ...MODEL_ENTRANCES,
  ...HTTP_ENTRANCES,
  ...SCRIPT_ENTRANCES,
  ...FILE_ENTRANCES,
  ...SANDBOX_ENTRANCES,
  ...TOOL_ENTRANCES,
  ...JOURNAL_ENTRANCES,
]
