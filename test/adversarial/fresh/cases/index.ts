import type { FreshCase } from '../fresh-case.ts'
import { COLLECTING } from './collecting.ts'
import { EXHAUSTING } from './exhausting.ts'
import { FLOODING } from './flooding.ts'
import { FORGING } from './forging.ts'
import { HOST_FILES } from './host-files.ts'
import { NETWORK } from './network.ts'
import { OUTLIVING } from './outliving.ts'
import { PROCESSES } from './processes.ts'
import { PYODIDE_CASES } from './pyodide.ts'
import { RIGHTS_CASES } from './rights.ts'
import { SHARED } from './shared.ts'
import { TOOLS_AND_SECRETS } from './tools-and-secrets.ts'

/** All attacks, by what they are after. */
export const FRESH: readonly (readonly [string, readonly FreshCase[]])[] = [
  ['files of the host', HOST_FILES],
  ['processes and the harness', PROCESSES],
  ['the network', NETWORK],
  ['rights', RIGHTS_CASES],
  ['forged results', FORGING],
  ['what outlives a run', OUTLIVING],
  ['exhaustion', EXHAUSTING],
  ['floods', FLOODING],
  ['collected files', COLLECTING],
  ['tools and secrets', TOOLS_AND_SECRETS],
  ['what is shared, as documented', SHARED],
  ['WebAssembly', PYODIDE_CASES],
]
