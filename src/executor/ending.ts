import type { Ending } from '../sandbox/index.ts'
import type { Evidence } from './evidence.ts'
import type { ScriptDone } from './parting.ts'

const BY_HOST = { exitCode: null, signal: null, by: 'host' } as const

/** How a run came to its end, from what the harness, the kernel and the host know. */
export function endingOf(evidence: Evidence): Ending {
  const { parting, memoryGrew } = evidence
  switch (parting.kind) {
    case 'done':
      return endingOfScript(parting.frame, memoryGrew)
    case 'closed':
      return endingOfSandbox(evidence)
    case 'deadline':
      return { cause: 'timeout', ...BY_HOST }
    case 'cancelled':
      return { cause: 'cancelled', ...BY_HOST }
    case 'output-limit':
      return { cause: 'output-limit', ...BY_HOST }
    case 'violation':
      return { cause: 'destroyed', ...BY_HOST }
  }
}

function endingOfScript({ ending }: ScriptDone, memoryGrew: boolean): Ending {
  if (ending === undefined) return { cause: 'exit', exitCode: null, signal: null, by: 'unknown' }
  const { cause, exit_code: exitCode, signal, by } = ending
  const killedForMemory =
    memoryGrew && cause === 'signal' && signal === 'SIGKILL' && (by === 'kernel' || by === 'unknown')
  return killedForMemory ? { cause: 'memory-limit', exitCode, signal, by: 'kernel' } : { cause, exitCode, signal, by }
}

function endingOfSandbox({ sandboxEnding, memoryGrew }: Evidence): Ending {
  const { exitCode = null, signal = null, by = 'unknown', message = '' } = sandboxEnding ?? {}
  return {
    cause: memoryGrew || sandboxEnding?.cause === 'memory-limit' ? 'memory-limit' : 'channel-closed',
    exitCode,
    signal,
    by: memoryGrew ? 'kernel' : by,
    ...(message === '' ? {} : { message }),
  }
}
