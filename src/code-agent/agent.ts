import { randomUUID } from 'node:crypto'
import { SandglassError } from '../errors/index.ts'
import type { ModelInput } from '../llm/index.ts'
import { checkDecision, type Decision, type Reviewer } from '../review/index.ts'
import { formatValue, refuseUnknown } from '../support/index.ts'
import { prepareTools, type ToolsInput } from '../tools/index.ts'
import { type AgentParts, buildGraph, type CompiledGraph, REVIEW, TAKE_OVER } from './agent-graph.ts'
import type { AgentValues } from './agent-state.ts'
import { askerOf } from './ask-model.ts'
import { type Checkpointer, checkCheckpointer, withTypedErrors } from './checkpointer.ts'
import { Claims } from './claims.ts'
import { decidedBefore } from './code-answer.ts'
import type { CodeAgentOutcome, CodeAgentRecord, CodeAnswer, CodeProposal } from './code-proposal.ts'
import type { CodeToolExecutor } from './code-tool-executor.ts'

/** Options of {@link createCodeAgent}. */
export interface CodeAgentOptions {
  /** Chat models of LangChain get messages, with the images of tools; other models get one text. */
  readonly model: ModelInput
  readonly tools?: ToolsInput
  /** Runs the scripts. The agent does not dispose of it. */
  readonly executor: CodeToolExecutor
  /** Keeps the threads: one of LangGraph's. A pause for review outlives the process if this one does. */
  readonly checkpointer: Checkpointer
  /**
   * The decision about each script before it runs: `always` pauses the graph until an answer is given, a function decides within
   * the process, `never` runs every script. Default `always`.
   */
  readonly review?: 'always' | 'never' | Reviewer
  /** The maximum number of replies of the model to one message of the user. Default 20, at most 200. */
  readonly maxTurns?: number
  /** The maximum time of one reply of the model, in milliseconds. Default 10 minutes. */
  readonly modelTimeoutMs?: number
  /** A text before the generated instructions. */
  readonly instructions?: string
  /** The secrets of the executor, redacted in tool answers that go to the model without the script. */
  readonly secrets?: Readonly<Record<string, string>>
}

/** The state of a thread. */
export interface CodeAgentState {
  readonly thread: string
  /**
   * `waiting`: for the answer to `proposal`. `unfinished`: the process ended in the middle; `resume` continues. `idle`: there is no thread of
   * this name. After all other statuses, `start` continues the conversation.
   */
  readonly status: 'waiting' | 'unfinished' | 'idle' | CodeAgentOutcome
  readonly proposal: CodeProposal | null
  /** The last reply of the model, if it is an answer. */
  readonly answer: string | null
  /** All decisions and runs of the thread, in order. */
  readonly records: readonly CodeAgentRecord[]
}

/** A call on a thread. */
export interface ThreadOptions {
  /** The name of the conversation in the checkpointer. */
  readonly thread: string
  readonly signal?: AbortSignal | undefined
}

/** An agent whose model answers with Python. Made by {@link createCodeAgent}. */
export interface CodeAgent {
  /**
   * LangGraph's compiled graph, with the nodes `call_llm`, `propose`, `human_review_node` and `execute_code`. Resume its pause with
   * `new Command({ resume: { proposal: id, decision: 'accept' } })` and `durability: 'sync'`.
   */
  readonly graph: CompiledGraph
  /**
   * Sends a message of the user, and continues until an answer or a pause.
   * @throws SandglassError `invalid_request` while the thread is `waiting` or `unfinished`; else as {@link CodeAgent.resume}.
   */
  start(task: string, options: ThreadOptions): Promise<CodeAgentState>
  /**
   * Answers a proposal, and continues until an answer of the model or the next pause.
   * @throws SandglassError `proposal_decided` if another answer came first, or if the proposal is not the one that waits; TypeError for an answer
   * that is not a decision; else as {@link CodeAgent.resume}.
   */
  answer(answer: CodeAnswer, options: ThreadOptions): Promise<CodeAgentState>
  /**
   * Continues a thread whose process ended. A script that had begun is not run again: the model is told that it may have run.
   * Does nothing on a thread that waits or has ended.
   * @param options `takeOver`: asserts that the process that ran the script is gone, if this machine cannot tell.
   * @throws SandglassError `checkpointer_failed`, `agent_busy`; the errors of executor, model and reviewer.
   */
  resume(options: ThreadOptions & { readonly takeOver?: boolean }): Promise<CodeAgentState>
  /** Reads a thread. @throws SandglassError `checkpointer_failed`. */
  state(options: ThreadOptions): Promise<CodeAgentState>
}

const KNOWN = [
  'model',
  'tools',
  'executor',
  'checkpointer',
  'review',
  'maxTurns',
  'modelTimeoutMs',
  'instructions',
  'secrets',
] as const
const MODEL_TIMEOUT_MS = 10 * 60 * 1000
const MAX_TURNS = 200
/** Maximum number of steps of the graph for one turn: model, check, review with its corrections, execution. */
const STEPS_PER_TURN = 16

/**
 * Makes an agent on LangGraph whose scripts a person can review before they run.
 * @throws TypeError for an invalid option; SandglassError `langgraph_missing`.
 */
export async function createCodeAgent(options: CodeAgentOptions): Promise<CodeAgent> {
  const parts = checkParts(options)
  return new GraphAgent(buildGraph(await importLangGraph(), parts), parts)
}

function checkParts(options: CodeAgentOptions): AgentParts {
  refuseUnknown('createCodeAgent', options, KNOWN)
  const { model, tools = [], executor, review = 'always', maxTurns = 20, instructions = '', secrets = {} } = options
  const { modelTimeoutMs = MODEL_TIMEOUT_MS } = options
  checkCheckpointer(options.checkpointer)
  if (review !== 'always' && review !== 'never' && typeof review !== 'function')
    throw new TypeError(`createCodeAgent: review: ${formatValue(review)} is none of 'always', 'never' and a function`)
  if (!Number.isSafeInteger(maxTurns) || maxTurns < 1 || maxTurns > MAX_TURNS)
    throw new TypeError(
      `createCodeAgent: maxTurns: ${formatValue(maxTurns)} is not a whole number from 1 to ${MAX_TURNS}`,
    )
  if (typeof modelTimeoutMs !== 'number' || !(modelTimeoutMs > 0))
    throw new TypeError(`createCodeAgent: modelTimeoutMs: ${formatValue(modelTimeoutMs)} is not a positive number`)
  if (typeof executor?.execute !== 'function' || typeof executor.inspect !== 'function')
    throw new TypeError('createCodeAgent: executor: must be a CodeToolExecutor, such as new LocalPythonExecutor()')
  prepareTools(tools)
  const checkpointer = withTypedErrors(options.checkpointer)
  return { ask: askerOf(model, modelTimeoutMs), tools, executor, checkpointer, review, maxTurns, instructions, secrets }
}

async function importLangGraph(): Promise<Parameters<typeof buildGraph>[0]> {
  try {
    const [graph, messages] = await Promise.all([import('@langchain/langgraph'), import('@langchain/core/messages')])
    return { graph, messages }
  } catch (error) {
    const message = 'createCodeAgent needs two packages: npm install @langchain/langgraph @langchain/core'
    throw new SandglassError('langgraph_missing', message, { cause: error })
  }
}

class GraphAgent implements CodeAgent {
  readonly graph: CompiledGraph
  readonly #parts: AgentParts
  readonly #claims: Claims
  /** The threads that continue in this process. */
  readonly #busy = new Set<string>()

  constructor(graph: CompiledGraph, parts: AgentParts) {
    this.graph = graph
    this.#parts = parts
    this.#claims = new Claims(parts.checkpointer)
  }

  async start(task: string, options: ThreadOptions): Promise<CodeAgentState> {
    if (typeof task !== 'string' || task.trim() === '')
      throw new TypeError(`start: the task ${formatValue(task)} is not a non-empty text`)
    return this.#continue(options, ({ status, proposal }) => {
      if (status === 'waiting')
        throw new SandglassError(
          'invalid_request',
          `thread: waits for the answer to proposal ${proposal?.id}: call answer()`,
        )
      if (status === 'unfinished')
        throw new SandglassError('invalid_request', 'thread: was not finished: call resume() first')
      return { messages: [{ role: 'user', content: task }] }
    })
  }

  async answer(answer: CodeAnswer, options: ThreadOptions): Promise<CodeAgentState> {
    const { proposal: id, ...given } = answer
    const decision = checkDecision(given)
    if (typeof id !== 'string' || id === '')
      throw new TypeError(`proposal: ${formatValue(id)} is not the id of a proposal`)
    const { thread } = options
    await this.#assertUndecided(checkThread(thread), id)
    return this.#continue(options, async ({ proposal }) => {
      await this.#assertUndecided(thread, id)
      if (proposal?.id !== id)
        throw new SandglassError(
          'proposal_decided',
          `thread ${formatValue(thread)} does not wait for an answer to ${formatValue(id)}`,
        )
      // Recorded before the graph continues, because LangGraph keeps an answer that could not be recorded and prefers it to later ones.
      const claim = randomUUID()
      const inForce = await this.#claims.decide<Decision>(thread, id, claim, decision)
      if (inForce.claim !== claim) throw decidedBefore(inForce)
      return null
    })
  }

  async #assertUndecided(thread: string, id: string): Promise<void> {
    const before = await this.#claims.decisionOn<Decision>(thread, id)
    if (before !== undefined) throw decidedBefore(before)
  }

  async resume({
    takeOver = false,
    ...options
  }: ThreadOptions & { readonly takeOver?: boolean }): Promise<CodeAgentState> {
    return this.#continue(options, ({ status }) => (status === 'unfinished' ? null : undefined), {
      [TAKE_OVER]: takeOver,
    })
  }

  async state({ thread }: ThreadOptions): Promise<CodeAgentState> {
    const config = { configurable: { thread_id: checkThread(thread) } }
    const { values, tasks } = await this.graph.getState(config)
    const { outcome, proposal = null, messages = [], records = [] } = values as Partial<AgentValues>
    const about = { thread, proposal: null, answer: null, records }
    const [task] = tasks
    if (task === undefined) {
      const answer = outcome === 'answered' ? (messages.at(-1)?.text ?? null) : null
      return { ...about, status: outcome ?? 'idle', answer }
    }
    const isWaiting = task.name === REVIEW && proposal !== null && typeof this.#parts.review !== 'function'
    if (!isWaiting || (await this.#claims.decisionOn(thread, proposal.id)) !== undefined)
      return { ...about, status: 'unfinished' }
    return { ...about, status: 'waiting', proposal }
  }

  /** @param inputOf returns the input of the graph; undefined to do nothing. @param also further keys of its config. */
  async #continue(
    options: ThreadOptions,
    inputOf: (state: CodeAgentState) => unknown,
    also: Readonly<Record<string, unknown>> = {},
  ): Promise<CodeAgentState> {
    const { thread, signal } = options
    checkThread(thread)
    if (this.#busy.has(thread))
      throw new SandglassError(
        'agent_busy',
        `thread ${formatValue(thread)} is in use by another call: await that call first`,
      )
    this.#busy.add(thread)
    try {
      const state = await this.state(options)
      const input = await inputOf(state)
      if (input === undefined) return state
      await this.graph.invoke(input, {
        configurable: { thread_id: thread, ...also },
        durability: 'sync',
        recursionLimit: (this.#parts.maxTurns + 1) * STEPS_PER_TURN,
        ...(signal && { signal }),
      })
      return await this.state(options)
    } finally {
      this.#busy.delete(thread)
    }
  }
}

function checkThread(thread: unknown): string {
  if (typeof thread === 'string' && thread !== '' && thread.length <= 500) return thread
  throw new TypeError(`thread: ${formatValue(thread)} is not a string of 1 to 500 characters`)
}
