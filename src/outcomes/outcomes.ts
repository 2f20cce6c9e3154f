import type { EndingCause } from '../sandbox/index.ts'
import type { WarningCode } from './warnings.ts'

/**
 * Every outcome of a call, with everything that depends on it. No other place maps one of these columns to another.
 * docs/cli.md lists the rows in this order.
 */
export const OUTCOMES = {
  completed: {
    meaning: 'the script gave a result',
    status: 'completed',
    errorKind: null,
    exitCode: 0,
    causes: [],
    wireKinds: [],
    lateWarning: null,
  },
  stepDone: {
    meaning: 'the script gave no result, and the mode needs none',
    status: 'step-done',
    errorKind: null,
    exitCode: 0,
    causes: [],
    wireKinds: [],
    lateWarning: null,
  },
  failed: {
    meaning: 'an exception, `sys.exit`, or no result in mode `plan`',
    status: 'failed',
    errorKind: 'error',
    exitCode: 1,
    causes: [],
    wireKinds: ['exception', 'exit', 'syntax'],
    lateWarning: 'error_after_result',
  },
  setupFailed: {
    meaning: 'the set-up of the script failed: a missing secret, a Python tool, the preamble',
    status: 'failed',
    errorKind: 'error',
    exitCode: 1,
    causes: [],
    wireKinds: ['secrets', 'setup'],
    lateWarning: 'error_after_result',
  },
  crashed: {
    meaning: "the script's process was killed by a signal or left by `os._exit`",
    status: 'crashed',
    errorKind: 'crash',
    exitCode: 1,
    // An exit with code 0 alone is not an outcome: the mode decides its meaning.
    causes: ['signal', 'exit'],
    wireKinds: ['crash'],
    lateWarning: 'crash',
  },
  invalidRequest: {
    meaning: 'wrong usage, or a request that cannot be run as it is',
    status: 'invalid-request',
    errorKind: 'invalid_request',
    exitCode: 2,
    causes: [],
    wireKinds: [],
    lateWarning: null,
  },
  refusedInside: {
    meaning: 'the same, found only in the sandbox: files that do not fit on its disk',
    status: 'failed',
    errorKind: 'invalid_request',
    exitCode: 2,
    causes: [],
    wireKinds: ['request'],
    lateWarning: 'error_after_result',
  },
  rejected: {
    meaning: 'the checker found mistakes; nothing was run',
    status: 'rejected',
    errorKind: 'validation',
    exitCode: 3,
    causes: [],
    wireKinds: [],
    lateWarning: null,
  },
  timedOut: {
    meaning: 'the timeout came first',
    status: 'timed-out',
    errorKind: 'timeout',
    exitCode: 4,
    causes: ['timeout'],
    wireKinds: ['timeout'],
    lateWarning: 'timeout',
  },
  outOfMemory: {
    meaning: 'the script needed more memory than its limit',
    status: 'memory-limit',
    errorKind: 'oom',
    exitCode: 5,
    causes: ['memory-limit'],
    wireKinds: ['memory'],
    lateWarning: 'memory_limit',
  },
  tooMuchOutput: {
    meaning: 'the script sent more than `--max-output`',
    status: 'output-limit',
    errorKind: 'output_limit',
    exitCode: 6,
    causes: ['output-limit'],
    wireKinds: ['output_limit'],
    lateWarning: 'output_limit',
  },
  sandboxLost: {
    meaning: 'the infrastructure failed, and the sandbox is lost; trying again may help',
    status: 'sandbox-lost',
    errorKind: 'infrastructure',
    exitCode: 7,
    causes: ['channel-closed'],
    wireKinds: [],
    lateWarning: 'channel_closed',
  },
  channelViolated: {
    meaning: 'the sandbox broke the protocol, and was destroyed',
    status: 'sandbox-lost',
    errorKind: 'infrastructure',
    exitCode: 7,
    causes: ['destroyed'],
    wireKinds: [],
    lateWarning: 'channel_violation',
  },
  notStarted: {
    meaning: 'the harness started no script and gave no reason',
    status: 'sandbox-lost',
    errorKind: 'infrastructure',
    exitCode: 7,
    causes: ['not-started'],
    wireKinds: [],
    lateWarning: 'not_started',
  },
  unavailable: {
    meaning:
      'with a `code`: no engine, `--require` unmet, a limit that cannot be enforced, a feature that this version does not have',
    status: 'sandbox-lost',
    errorKind: 'infrastructure',
    exitCode: 8,
    causes: [],
    wireKinds: [],
    lateWarning: null,
  },
  owned: {
    meaning: 'with the `code` `workspace_owned`: the workspace has another owner',
    status: 'sandbox-lost',
    errorKind: 'infrastructure',
    exitCode: 9,
    causes: [],
    wireKinds: [],
    lateWarning: null,
  },
  cancelled: {
    meaning: 'the caller cancelled the run',
    status: 'cancelled',
    errorKind: 'cancelled',
    exitCode: 130,
    causes: ['cancelled'],
    wireKinds: ['cancelled'],
    lateWarning: 'cancelled',
  },
  interrupted: {
    meaning: 'the caller interrupted a cell of a session, which keeps its state',
    status: 'interrupted',
    errorKind: 'cancelled',
    exitCode: 130,
    causes: [],
    wireKinds: ['interrupted'],
    lateWarning: 'cancelled',
  },
  defect: {
    meaning: "a callback of the library's caller threw, or a defect of Sandglass",
    status: 'failed',
    errorKind: 'internal',
    exitCode: 70,
    causes: [],
    wireKinds: [],
    lateWarning: 'callback_failed',
  },
} as const

type Outcomes = typeof OUTCOMES

/** A row of {@link OUTCOMES}. */
export type OutcomeName = keyof Outcomes

/** The outcome of a run; the others are refusals. */
export type RunOutcomeName = Exclude<OutcomeName, 'invalidRequest' | 'unavailable' | 'owned'>

/** A row that an ending alone can lead to. */
export type EndingOutcomeName = NamesWith<'causes'>

/** A row that an error frame can lead to. */
export type ErrorOutcomeName = NamesWith<'wireKinds'>

type NamesWith<Column extends 'causes' | 'wireKinds'> = {
  [Name in RunOutcomeName]: Outcomes[Name][Column] extends readonly [] ? never : Name
}[RunOutcomeName]

/** The status of a result, or of a request that was refused. */
export type Status = Outcomes[OutcomeName]['status']

/** The status of a run. */
export type ExecutionStatus = Outcomes[RunOutcomeName]['status']

/** Coarse reason of a failure, for programs. */
export type ErrorKind = Exclude<Outcomes[OutcomeName]['errorKind'], null>

/** The columns of {@link OUTCOMES}. */
export interface OutcomeRow {
  /** For people: when a call ends like this. */
  readonly meaning: string
  readonly status: Status
  readonly errorKind: ErrorKind | null
  /** Of the command line. */
  readonly exitCode: number
  /** Causes of endings that lead to this outcome if nothing else has decided it. */
  readonly causes: readonly EndingCause[]
  /** The values of `kind` in error frames that lead to it. */
  readonly wireKinds: readonly string[]
  /** The code of the warning that replaces it if the outcome is already decided; null if that cannot happen. */
  readonly lateWarning: WarningCode | null
}

type CauseInTable = Outcomes[OutcomeName]['causes'][number]

/** The outcome of each cause. A cause without a row does not compile. */
export const OUTCOME_OF_CAUSE: Readonly<Record<EndingCause, EndingOutcomeName>> = Object.fromEntries(
  rows().flatMap(([name, { causes }]) => causes.map((cause) => [cause, name])),
) as Record<CauseInTable, EndingOutcomeName>

const OUTCOME_OF_WIRE_KIND: ReadonlyMap<string, ErrorOutcomeName> = new Map(
  rows().flatMap(([name, { wireKinds }]) => wireKinds.map((kind) => [kind, name as ErrorOutcomeName])),
)

/** The outcome that an error frame of this kind decides. A kind that this version does not know is a failure. */
export function outcomeOfWireKind(kind: string): ErrorOutcomeName {
  return OUTCOME_OF_WIRE_KIND.get(kind) ?? 'failed'
}

/** Codes of the warnings that error frames become after a result. */
export const LATE_ERROR_CODES: ReadonlySet<WarningCode> = new Set(
  rows().flatMap(([, { wireKinds, lateWarning }]) =>
    wireKinds.length > 0 && lateWarning !== null ? [lateWarning] : [],
  ),
)

/** The fields of a result that its outcome sets. */
export function statusFields(name: RunOutcomeName): { status: ExecutionStatus; errorKind: ErrorKind | null } {
  const { status, errorKind } = OUTCOMES[name]
  return { status, errorKind }
}

const SUCCESSES: ReadonlySet<string> = new Set(
  rows().flatMap(([, { status, errorKind }]) => (errorKind === null ? [status] : [])),
)

/** True for the status of a run, or of a task, that did what was asked. */
export function isSuccess(status: string): boolean {
  return SUCCESSES.has(status)
}

function rows(): [OutcomeName, OutcomeRow][] {
  return Object.entries(OUTCOMES) as [OutcomeName, OutcomeRow][]
}
