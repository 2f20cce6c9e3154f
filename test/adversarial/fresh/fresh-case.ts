import assert from 'node:assert/strict'
import type { RunOptions } from '../../../src/options.ts'
import type { Answer } from '../driver/answer.ts'
import type { SandboxProcess } from '../driver/engine.ts'
import type { Fixtures } from '../driver/fixtures.ts'

/** Where a case is run. */
export type FreshEngine = 'local' | 'docker' | 'pyodide'

/** What one run must come to. */
export interface Seen {
  readonly status: string
  /** The whole of `finalData`; null where there is no result. */
  readonly data: unknown
  /** The codes of its warnings, sorted. Default: none. */
  readonly warnings?: readonly string[]
  /** Codes that come or not, by timing. */
  readonly mayWarn?: readonly string[]
}

/** What the host saw of a case. */
export interface Look {
  readonly engine: FreshEngine
  readonly first: Answer
  /** The run of `next`, in the same sandbox. */
  readonly second: Answer | null
  /** Processes of the sandbox before the first run, and after the last. */
  readonly processes: { readonly before: readonly SandboxProcess[]; readonly after: readonly SandboxProcess[] }
  /** What the broker's descriptors lead to, after the last run. */
  readonly opened: () => readonly string[]
  readonly fixtures: Fixtures
}

/** One attack on one sentence of SECURITY.md. */
export interface FreshCase {
  readonly id: string
  /** Words of SECURITY.md (or of the page that `claimIn` names) that it attacks; a test finds them there. */
  readonly claim: string
  /** Default: SECURITY.md. */
  readonly claimIn?: string
  readonly title: string
  /** What works, and how far: the case then holds what is so, and fails once it is not. */
  readonly finding?: string
  readonly engines: readonly FreshEngine[]
  /** Python, after {@link PRELUDE}. `@@NAME@@` stands for a value of the fixtures. */
  readonly script: string
  readonly options?: RunOptions
  /** Called once the first run has settled, before another one is sent. */
  readonly settled?: () => void
  /** A second script, with the same tools, which finds what the first one left in the same sandbox. */
  readonly next?: string
  readonly seen: Seen
  readonly thenSeen?: Seen
  /** What an engine shows otherwise. */
  readonly differs?: Partial<Record<FreshEngine, { readonly seen?: Seen; readonly thenSeen?: Seen }>>
  /** Whether the sandbox may be given up for it, as the documents say. Default: it serves the next run. */
  readonly costsSandbox?: boolean
  /** What is looked at on the host beside. Throws when it is not as it must be. */
  readonly host?: (look: Look) => void | Promise<void>
}

/** The engines that run real processes. */
export const LINUX: readonly FreshEngine[] = ['local', 'docker']

export const ALL: readonly FreshEngine[] = [...LINUX, 'pyodide']

/** What `host` looks at where a run must settle by its deadline, the grace and a second. */
export function settlesWithin(ms: number): (look: Pick<Look, 'first'>) => void {
  return ({ first }) => assert.ok(first.wallMs < ms, `it took ${Math.round(first.wallMs)} ms`)
}

/** Functions that every script begins with: what an attempt came to, and system calls by number. */
export const PRELUDE: string = String.raw`
import errno, os, signal, socket, stat, struct, sys, time
try:
    import ctypes, fcntl, resource
    libc = ctypes.CDLL(None, use_errno=True)
except (ImportError, OSError):
    pass

def tried(act, *given, **named):
    try:
        came = act(*given, **named)
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error))
    except BaseException as error:
        return type(error).__name__
    return came if isinstance(came, (bool, int, str, list, dict)) else "done"

def call(number, *given):
    if isinstance(number, tuple):
        number = number[os.uname().machine == "aarch64"]
    came = libc.syscall(*[ctypes.c_long(one) if isinstance(one, int) else one for one in (number, *given)])
    return came if came >= 0 else errno.errorcode.get(ctypes.get_errno(), "?")

def in_child(act):
    """How a forked child ended that did it: an exit code, or a signal as a negative number."""
    pid = os.fork()
    if pid == 0:
        try:
            act()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

def pids():
    return sorted(int(name) for name in os.listdir("/proc") if name.isdigit())

def zygote():
    return next(pid for pid in pids() if pid not in (1, os.getpid()))

`
