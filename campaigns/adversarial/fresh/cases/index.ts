import type { Wall } from '../../../../src/testing/index.ts'
import type { FreshCase } from '../fresh-case.ts'
import { COLLECTING } from './collecting.ts'
import { EXHAUSTING } from './exhausting.ts'
import { FLOODING } from './flooding.ts'
import { FORGING } from './forging.ts'
import { HOST_FILES } from './host-files.ts'
import { IN_FLIGHT } from './in-flight.ts'
import { NETWORK } from './network.ts'
import { OUTLIVING } from './outliving.ts'
import { PROCESSES } from './processes.ts'
import { PYODIDE_CASES } from './pyodide.ts'
import { RIGHTS_CASES } from './rights.ts'
import { SHARED } from './shared.ts'
import { TOOL_TIME } from './tool-time.ts'
import { TOOLS_AND_SECRETS } from './tools-and-secrets.ts'

/** All attacks by area: its name, its cases, and the walls that decide whether they pass. */
export const FRESH: readonly (readonly [string, readonly FreshCase[], readonly Wall[]])[] = [
  ['files of the host', HOST_FILES, ['kernel']],
  ['processes and the harness', PROCESSES, ['kernel']],
  ['the network', NETWORK, ['kernel']],
  ['rights', RIGHTS_CASES, ['kernel']],
  ['forged results', FORGING, ['broker']],
  ['what outlives a run', OUTLIVING, ['kernel']],
  ['descriptors in flight', IN_FLIGHT, ['kernel']],
  ['exhaustion', EXHAUSTING, ['kernel']],
  ['floods', FLOODING, ['broker', 'channel']],
  ['collected files', COLLECTING, ['broker', 'kernel']],
  ['tools and secrets', TOOLS_AND_SECRETS, ['broker']],
  ['the time of tools', TOOL_TIME, ['broker', 'kernel']],
  ['what is shared, as documented', SHARED, ['engine', 'kernel']],
  ['WebAssembly', PYODIDE_CASES, ['webassembly']],
]
