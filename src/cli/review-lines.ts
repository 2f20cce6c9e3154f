import { MAX_DECIDER, MAX_DECISION_TEXT, type Decision, type Proposal, type Reviewer } from '../review/index.ts'
import { messageOf } from '../errors/index.ts'
import { formatValue } from '../support/index.ts'
import { type InputLine, inputLines } from './request-lines.ts'

const MAX_LINE_BYTES = 2 * 1024 * 1024

/** A decision on a line. */
interface DecisionLine {
  readonly id: string
  readonly decision: (typeof DECISIONS)[number]
  readonly script: string | null
  readonly text: string | null
  readonly by: string | null
}

const DECISIONS = ['accept', 'edit', 'respond', 'reject'] as const
const TEXTS = ['script', 'text', 'by'] as const

/** A proposal as one line of JSON (docs/cli.md). */
export function proposalLine(proposal: Proposal): Record<string, unknown> {
  const { limitsEnforced, ...sandbox } = proposal.sandbox
  return { v: 1, type: 'proposal', ...proposal, sandbox: { ...sandbox, limits_enforced: limitsEnforced } }
}

/**
 * Writes each proposal as a line, and reads each decision as a line. A line that is no decision about the proposal that waits is
 * reported.
 */
export function reviewByLines(
  input: AsyncIterable<Uint8Array>,
  write: (line: Record<string, unknown>) => Promise<void>,
  report: (problem: string) => Promise<void>,
): Reviewer {
  let waiting: { readonly proposal: Proposal; readonly decided: PromiseWithResolvers<Decision> } | undefined
  let ended: Promise<string> | undefined
  const read = async (): Promise<void> => {
    for await (const line of inputLines(input, MAX_LINE_BYTES)) {
      const decision = waiting === undefined ? 'no proposal waits' : decisionIn(line, waiting.proposal)
      if (typeof decision === 'string') await report(`line ${line.number} of stdin is no decision: ${decision}`)
      else {
        waiting?.decided.resolve(toDecision(decision))
        waiting = undefined
      }
    }
  }
  return async (proposal) => {
    const decided = Promise.withResolvers<Decision>()
    waiting = { proposal, decided }
    await write(proposalLine(proposal))
    // Reads on while a script runs: the second answer to a proposal is told at once.
    ended ??= read().then(
      () => 'stdin ended',
      (error: unknown) => `stdin cannot be read (${messageOf(error)})`,
    )
    const undecided = ended.then((why) => {
      throw new Error(`${why} before a decision about the proposal ${proposal.id}`)
    })
    return Promise.race([decided.promise, undecided])
  }
}

/** The decision on a line, or what is wrong with it. */
function decisionIn(line: InputLine, proposal: Proposal): DecisionLine | string {
  if ('problem' in line)
    return line.problem === 'too-long' ? `it is longer than ${MAX_LINE_BYTES} bytes` : 'it is not UTF-8'
  let given: unknown
  try {
    given = JSON.parse(line.text)
  } catch (error) {
    return messageOf(error)
  }
  if (typeof given !== 'object' || given === null) return 'it is not an object'
  const unknown = Object.keys(given).find((key) => !['id', 'decision', ...TEXTS].includes(key))
  if (unknown !== undefined) return `it has an unknown key ${JSON.stringify(unknown)}`
  const { id, decision, ...texts }: Partial<Record<'id' | 'decision' | (typeof TEXTS)[number], unknown>> = given
  const { script = null, text = null, by = null } = texts
  if (id !== proposal.id) return `it is about ${formatValue(id)}, and ${JSON.stringify(proposal.id)} waits`
  const known = DECISIONS.find((one) => one === decision)
  if (known === undefined) return `decision: ${formatValue(decision)} is none of ${DECISIONS.join(', ')}`
  if (!isTextOrNull(script) || !isTextOrNull(text) || !isTextOrNull(by)) return `${TEXTS.join(', ')}: texts, or null`
  if ((by ?? '').length > MAX_DECIDER) return `by is longer than ${MAX_DECIDER} characters`
  return problemOf(known, script, text) ?? { id, decision: known, script, text, by }
}

function problemOf(decision: DecisionLine['decision'], script: string | null, text: string | null): string | undefined {
  if (script !== null && script.trim() === '') return 'its script is empty'
  if (decision === 'edit' && script === null) return 'edit needs the changed script'
  if (decision === 'respond' && (text ?? '').trim() === '') return 'respond needs a text for the model'
  if (decision !== 'accept' && decision !== 'edit' && script !== null) return `${decision} takes no script`
  if ((text ?? '').length > MAX_DECISION_TEXT) return `its text is longer than ${MAX_DECISION_TEXT} characters`
  return undefined
}

function isTextOrNull(value: unknown): value is string | null {
  return value === null || typeof value === 'string'
}

/** The decision as the library takes it. An edit accepts another script. */
function toDecision({ decision, script, text, by }: DecisionLine): Decision {
  switch (decision) {
    case 'accept':
    case 'edit':
      return { decision: 'accept', script, by }
    case 'respond':
      return { decision, text: text ?? '', by }
    case 'reject':
      return { decision, text: (text ?? '').trim() === '' ? REJECTED : (text ?? ''), by }
  }
}

/** The reason of a rejection for which a person gives none. */
export const REJECTED = 'rejected without a reason'
