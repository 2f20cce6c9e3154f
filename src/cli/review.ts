import { SandglassError } from '../errors/index.ts'
import type { Reviewer } from '../review/index.ts'
import type { JournalEvent } from '../journal/index.ts'
import { formatValue } from '../support/index.ts'
import type { Given } from './args.ts'
import { type Context, supportsAnsi, note } from './context.ts'
import { UsageError } from './failure.ts'
import type { CallApprover } from './call-approver.ts'
import { DecisionLines, REJECTED } from './review-lines.ts'

/** The reviewer that `--review` asks for. */
export interface CommandReview {
  readonly review: Reviewer
  /** Approves calls of tools by lines, too; undefined at a terminal. */
  readonly approver: CallApprover | undefined
  /** Ends the task after the journal has a rejection. */
  readonly onEvent: (event: JournalEvent) => void
  readonly signal: AbortSignal
  end(): void
}

/**
 * `--review always`: a person at the terminal decides, or with `--json` a program over stdin and stdout. Undefined for `never`.
 * @param write writes text between the other lines on stderr.
 * @param unless the value without the flag.
 * @throws UsageError for another value, or if nobody can answer.
 */
export function reviewOf(
  given: Given,
  context: Context,
  write: (text: string) => Promise<void>,
  unless: 'always' | 'never' = 'never',
): CommandReview | undefined {
  const wanted = given.last('--review') ?? unless
  if (wanted === 'never') return undefined
  if (wanted !== 'always')
    throw new UsageError('invalid_request', `--review: ${formatValue(wanted)} is neither always nor never`)
  const asLines = given.has('--json') || given.has('--events')
  const taken = ['--file', '--output', '--pricing'].find((flag) => given.all(flag).some(isStdin))
  if (taken !== undefined || given.positionals[0] === '-')
    throw new UsageError(
      'invalid_request',
      `--review always reads decisions from stdin: give ${taken ?? 'the task'} another way`,
    )
  if (!asLines && !(process.stdin.isTTY && context.stderr.isTerminal))
    throw new UsageError('invalid_request', '--review always needs a terminal, or --json and decisions on stdin')
  const rejected = new AbortController()
  const lines = asLines
    ? new DecisionLines(
        process.stdin,
        (line) => context.stdout.line(line),
        (problem) => note(context, problem),
      )
    : undefined
  const terminal = { env: context.env, coloured: supportsAnsi(context), write }
  // The parser of Python is loaded with the first proposal.
  const review: Reviewer =
    lines?.review ??
    (async (proposal, about) => (await import('./review-person.ts')).reviewByPerson(terminal)(proposal, about))
  return {
    review,
    approver: lines,
    onEvent: (event) => {
      if (event.type !== 'proposal_decided' || event.decision !== 'reject') return
      const who = event.by === null ? '' : ` by ${event.by}`
      rejected.abort(new SandglassError('aborted', `rejected${who}: ${event.text ?? REJECTED}`))
    },
    signal: AbortSignal.any([context.signal, rejected.signal]),
    // While stdin is read, a pipe that stays open would keep this process alive.
    end: () => void process.stdin.destroy(),
  }
}

function isStdin(value: string): boolean {
  return value === '-' || value.startsWith('-:')
}
