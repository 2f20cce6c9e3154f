import { openEngine } from './pyodide.ts'
import type { Exclusion, TestedEngine } from './tested.ts'

const NO_CTYPES: Exclusion = { why: 'memory_by_address is false: there is no ctypes' }
const NO_THREADS: Exclusion = { why: 'capabilities.threads is false' }
const NO_SIGNALS: Exclusion = { why: 'capabilities.processes is false: there are no alarms and interval timers' }

/** Tests of the Pyodide engine. Its report shows each missing capability that excludes a case. */
export const PYODIDE: TestedEngine = {
  name: 'pyodide',
  ready: () => Promise.resolve({ skip: false, open: () => openEngine() }),
  groups: [
    'wasm-pyodide',
    'benign-control',
    'tool-bridge',
    'harness-tampering',
    'timeouts',
    'resource-exhaustion',
    'protocol',
    'secrets',
    'network',
  ],
  faults: new Map(),
  excluded: new Map<string, Exclusion>([
    ['CTL-026', NO_CTYPES],
    ['RES-037', NO_CTYPES],
    ['TIM-020', NO_THREADS],
    ['PRO-035', NO_THREADS],
    ['TIM-007', NO_SIGNALS],
    ['RES-023', { why: 'capabilities.processes is false: there is no scheduler' }],
    ['TIM-013', { why: 'its hashlib has no OpenSSL and no pbkdf2_hmac' }],
    ['NET-011', { why: 'network is language-only: a script cannot listen, so there is no peer to reach' }],
    ['RES-019', { why: 'limitsEnforced has no cpu: a CPU limit is refused' }],
  ]),
}
