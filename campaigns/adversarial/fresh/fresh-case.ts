import assert from 'node:assert/strict'
import { MACHINE_ENGINES, type MachineEngine } from '../../../test/support/walls.ts'
import type { RunOptions } from '../../../src/options/index.ts'
import type { Answer } from '../driver/answer.ts'
import type { SandboxProcess } from '../driver/engine.ts'
import type { Fixtures } from '../driver/fixtures.ts'

/** The expected outcome of one run. */
export interface ExpectedRun {
  readonly status: string
  /** The complete `finalData`; null without a result. */
  readonly data: unknown
  /** The codes of its warnings, sorted. Default: none. */
  readonly warnings?: readonly string[]
  /** Warning codes that may occur, depending on timing. */
  readonly mayWarn?: readonly string[]
}

/** The host's observations during a case. */
export interface Observation {
  readonly engine: MachineEngine
  readonly first: Answer
  /** The run of `next`, in the same sandbox; null without `next`. */
  readonly second: Answer | null
  /** Processes of the sandbox before the first run, and after the last. */
  readonly processes: { readonly before: readonly SandboxProcess[]; readonly after: readonly SandboxProcess[] }
  /** Lists the targets of the broker's open descriptors after the last run. */
  readonly opened: () => readonly string[]
  readonly fixtures: Fixtures
}

/** One attack on one sentence of SECURITY.md. */
export interface FreshCase {
  readonly id: string
  /** The text of SECURITY.md, or of `claimIn`, that the case attacks. A test checks that the page contains it. */
  readonly claim: string
  /** The page that contains the claim. Default: SECURITY.md. */
  readonly claimIn?: string
  readonly title: string
  /** Set for an attack that works: how far it gets. The case fails when this changes. */
  readonly finding?: string
  readonly engines: readonly MachineEngine[]
  /** Python, after {@link PRELUDE}. `@@NAME@@` stands for a value of the fixtures. */
  readonly script: string
  readonly options?: RunOptions
  /** Called when the first run has settled, before the next run starts. */
  readonly settled?: () => void
  /** A second script with the same tools. It runs in the same sandbox and looks for traces of the first one. */
  readonly next?: string
  readonly expected: ExpectedRun
  readonly expectedNext?: ExpectedRun
  /** Different expectations per engine. */
  readonly differs?: Partial<
    Record<MachineEngine, { readonly expected?: ExpectedRun; readonly expectedNext?: ExpectedRun }>
  >
  /** True when the attack may destroy the sandbox, as documented. Default: the same sandbox serves the next run. */
  readonly costsSandbox?: boolean
  /** Checks the host after the case. Throws when the check fails. */
  readonly host?: (observed: Observation) => void | Promise<void>
}

/** The engines whose scripts are Linux processes. */
export const LINUX: readonly MachineEngine[] = MACHINE_ENGINES.filter((name) => name !== 'pyodide')

export const ALL: readonly MachineEngine[] = MACHINE_ENGINES

/** Returns a `host` check: the first run settled within this time. */
export function settlesWithin(ms: number): (observed: Pick<Observation, 'first'>) => void {
  return ({ first }) => assert.ok(first.wallMs < ms, `it took ${Math.round(first.wallMs)} ms`)
}

/** Python functions that every script can use: attempts, system calls by number, child processes and process ids. */
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
    """Calls act in a forked child. Returns its exit code, or its signal as a negative number."""
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
