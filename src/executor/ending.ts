import type { Ending } from '../sandbox/index.ts'
import type { ConversationEnd, ScriptDone } from './conversation-end.ts'

/** The input of {@link endingOf}. */
export interface EndingFacts {
  readonly end: ConversationEnd
  /** True if there was an OOM kill in the sandbox during the run. */
  readonly hadMemoryKill: boolean
  /** The ending of the sandbox, if its channel closed and it reported its ending in time. */
  readonly sandboxEnding: Ending | undefined
}

const BY_HOST = { exitCode: null, signal: null, by: 'host' } as const

/** Combines the reports of the harness, the kernel and the host into one ending. */
export function endingOf(facts: EndingFacts): Ending {
  const { end, hadMemoryKill } = facts
  switch (end.kind) {
    case 'done':
      return endingOfScript(end.frame, hadMemoryKill)
    case 'closed':
      return endingOfSandbox(facts)
    case 'deadline':
      return { cause: 'timeout', ...BY_HOST }
    case 'cancelled':
      return { cause: 'cancelled', ...BY_HOST }
    case 'output-limit':
      return { cause: 'output-limit', ...BY_HOST }
    case 'protocol-error':
      // The host destroys a sandbox that breaks the protocol.
      return { cause: 'destroyed', ...BY_HOST }
  }
}

function endingOfScript({ ending }: ScriptDone, hadMemoryKill: boolean): Ending {
  if (ending === undefined) return { cause: 'exit', exitCode: null, signal: null, by: 'unknown' }
  const { cause, exit_code: exitCode, signal, by } = ending
  // The kernel's counter includes descendants of the script: the OOM kill ended the script only if nobody sent it a SIGKILL.
  const killedForMemory =
    hadMemoryKill && cause === 'signal' && signal === 'SIGKILL' && (by === 'kernel' || by === 'unknown')
  return killedForMemory ? { cause: 'memory-limit', exitCode, signal, by: 'kernel' } : { cause, exitCode, signal, by }
}

function endingOfSandbox({ sandboxEnding, hadMemoryKill }: EndingFacts): Ending {
  // The owner of the sandbox closed it during the run.
  if (sandboxEnding?.cause === 'cancelled') return sandboxEnding
  const { exitCode = null, signal = null, by = 'unknown', message = '' } = sandboxEnding ?? {}
  return {
    cause: hadMemoryKill || sandboxEnding?.cause === 'memory-limit' ? 'memory-limit' : 'channel-closed',
    exitCode,
    signal,
    by: hadMemoryKill ? 'kernel' : by,
    ...(message === '' ? {} : { message }),
  }
}
