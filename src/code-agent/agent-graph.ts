import { randomUUID } from 'node:crypto'
import type * as langChainMessages from '@langchain/core/messages'
import type { BaseMessage } from '@langchain/core/messages'
import type * as langGraph from '@langchain/langgraph'
import type { LangGraphRunnableConfig } from '@langchain/langgraph'
import { messageOf, SandglassError } from '../errors/index.ts'
import { checkDecision, type Decision, makeProposal, type Proposal, type Reviewer } from '../review/index.ts'
import { truncateMiddle } from '../support/index.ts'
import type { ToolsInput } from '../tools/index.ts'
import type { AcceptedScript, AgentValues } from './agent-state.ts'
import { type AskModel, MAX_REPLY_CHARS } from './ask-model.ts'
import type { Checkpointer } from './checkpointer.ts'
import { Claims } from './claims.ts'
import { decidedBefore, readAnswer } from './code-answer.ts'
import type { CodeAgentRecord, CodeProposal } from './code-proposal.ts'
import type { CodeToolExecutor } from './code-tool-executor.ts'
import { codeAgentInstructions } from './instructions.ts'
import { parseReply } from './reply.ts'
import { cutMessages, cutRecords } from './thread-size.ts'
import { type ContentPart, ToolResponses } from './tool-responses.ts'

/** The parts of an agent, all checked. */
export interface AgentParts {
  readonly ask: AskModel
  readonly tools: ToolsInput
  readonly executor: CodeToolExecutor
  readonly checkpointer: Checkpointer
  readonly review: 'always' | 'never' | Reviewer
  readonly maxTurns: number
  readonly instructions: string
  readonly secrets: Readonly<Record<string, string>>
}

/** The key of a config by which a caller asserts that the process that ran a script is gone. */
export const TAKE_OVER = 'sandglass_take_over'

type LangGraph = typeof langGraph
type Messages = typeof langChainMessages
type Update = Partial<AgentValues>
type NodeName = 'call_llm' | 'propose' | 'human_review_node' | 'execute_code'
/** The parts of LangGraph's compiled graph that the agent uses. */
export interface CompiledGraph {
  invoke(input: unknown, config?: object): Promise<unknown>
  getState(config: object): Promise<{ readonly values: unknown; readonly tasks: readonly { readonly name: string }[] }>
}

/** The node that pauses. */
export const REVIEW = 'human_review_node' as const
const [MODEL, PROPOSE, EXECUTE] = ['call_llm', 'propose', 'execute_code'] as const
/** The maximum length of a script's output in the message to the model, in characters. */
const MAX_OUTPUT_CHARS = 64 * 1024
/** The maximum number of times that a review function whose scripts have mistakes is asked again. */
const MAX_CORRECTIONS = 10
const MAX_PLAN_CHARS = 20_000

/** Makes the graph: model, check, review, execution. */
export function buildGraph(
  { graph, messages }: { readonly graph: LangGraph; readonly messages: Messages },
  parts: AgentParts,
): CompiledGraph {
  const { Annotation, StateGraph, START, END, messagesStateReducer } = graph
  const nodes = new AgentNodes(graph, messages, parts)
  const kept = <T>(value: T) => Annotation<T>({ reducer: (_, next) => next, default: () => value })
  const State = Annotation.Root({
    messages: Annotation<BaseMessage[]>({ reducer: messagesStateReducer, default: () => [] }),
    turn: kept<number>(0),
    draft: kept<AgentValues['draft']>(null),
    proposal: kept<AgentValues['proposal']>(null),
    accepted: kept<AgentValues['accepted']>(null),
    last: kept<string | null>(null),
    records: Annotation<readonly CodeAgentRecord[]>({
      reducer: (all, more) => cutRecords([...all, ...more]),
      default: () => [],
    }),
    outcome: kept<AgentValues['outcome']>(null),
  })
  return new StateGraph(State)
    .addNode(MODEL, (state, config) => nodes.callModel(state, config))
    .addNode(PROPOSE, (state, config) => nodes.propose(state, config))
    .addNode(REVIEW, (state, config) => nodes.review(state, config))
    .addNode(EXECUTE, (state, config) => nodes.execute(state, config))
    .addEdge(START, MODEL)
    .addConditionalEdges(MODEL, nextOf, [MODEL, PROPOSE, EXECUTE, END])
    .addConditionalEdges(PROPOSE, nextOf, [REVIEW, MODEL])
    .addConditionalEdges(REVIEW, nextOf, [REVIEW, EXECUTE, MODEL, END])
    .addEdge(EXECUTE, MODEL)
    .compile({ checkpointer: parts.checkpointer as never, name: 'code_agent' })

  function nextOf({ outcome, accepted, proposal, draft }: AgentValues): NodeName | typeof END {
    if (outcome !== null) return END
    if (accepted !== null) return EXECUTE
    if (proposal !== null) return REVIEW
    return draft === null ? MODEL : PROPOSE
  }
}

/** The nodes of the graph. Each ends with one checkpoint. */
class AgentNodes {
  readonly #graph: LangGraph
  readonly #messages: Messages
  readonly #parts: AgentParts
  readonly #claims: Claims
  readonly #system: string

  constructor(graph: LangGraph, messages: Messages, parts: AgentParts) {
    const { executor, tools, instructions } = parts
    this.#graph = graph
    this.#messages = messages
    this.#parts = parts
    this.#claims = new Claims(parts.checkpointer)
    const generated = codeAgentInstructions({ executor, tools: new ToolResponses().wrap(tools) })
    this.#system = instructions === '' ? generated : `${instructions}\n\n${generated}`
  }

  async callModel({ messages, turn }: AgentValues, config: LangGraphRunnableConfig): Promise<Update> {
    const { ask, maxTurns, review } = this.#parts
    const cleared: Update = { draft: null, proposal: null, accepted: null, outcome: null }
    if (turnsOf(messages) >= maxTurns) return { ...cleared, outcome: 'turns-exhausted' }
    const { AIMessage, SystemMessage } = this.#messages
    const prompt = [new SystemMessage(this.#system), ...messages.map((message) => this.#forModel(message))]
    const text = await ask(prompt, signalOf(config))
    const answered = { ...cleared, turn: turn + 1 }
    // The model has now seen all messages.
    const cut = cutMessages(this.#messages, messages)
    if (text.length > MAX_REPLY_CHARS) {
      const feedback = `Error: your reply has ${text.length} characters, and at most ${MAX_REPLY_CHARS} are read. Nothing was run. Answer in fewer.`
      return {
        ...answered,
        messages: [...cut, new AIMessage(truncateMiddle(text, MAX_OUTPUT_CHARS)), this.#result(feedback)],
      }
    }
    const message = new AIMessage(text)
    const reply = parseReply(text)
    if (reply.kind === 'answer') return { ...answered, messages: [...cut, message], outcome: 'answered' }
    if (reply.kind === 'unclear')
      return { ...answered, messages: [...cut, message, this.#result(`Error: ${reply.feedback}`)] }
    const { code: script, libraries } = reply
    if (review === 'never')
      return {
        ...answered,
        messages: [...cut, message],
        accepted: { proposal: null, script, libraries, author: 'model' },
      }
    return { ...answered, messages: [...cut, message], draft: { plan: planOf(text), script, libraries } }
  }

  /** Checks the script of the model and proposes it with its findings. */
  async propose({ draft, messages, last, records }: AgentValues, config: LangGraphRunnableConfig): Promise<Update> {
    if (draft === null) return {}
    const { executor, tools } = this.#parts
    const { script, libraries, plan } = draft
    const found = await executor.inspect(tools, script, libraries, { signal: signalOf(config) })
    if ('problem' in found) return { draft: null, messages: [this.#result(`Error: ${found.problem}`)] }
    const { dependencies, tools: called, sandbox } = found
    const proposal = await makeProposal(
      {
        task: taskOf(messages),
        attempt: turnsOf(messages),
        step: null,
        plan,
        script,
        dependencies,
        tools: called,
        sandbox,
        problem: null,
      },
      last,
    )
    const ran = records.findLast((record) => record.type === 'run')
    const afterUncertainRun = ran?.outcome === 'may-have-run'
    return { draft: null, proposal: { ...proposal, libraries, afterUncertainRun }, last: script }
  }

  /** Waits for the decision. The first recorded decision counts. */
  async review({ proposal, records }: AgentValues, config: LangGraphRunnableConfig): Promise<Update> {
    if (proposal === null) return {}
    const thread = threadOf(config)
    let inForce = await this.#claims.decisionOn<Decision>(thread, proposal.id)
    if (inForce === undefined) {
      const answer = await this.#decide(proposal, config)
      if ('problem' in answer) return { proposal: { ...proposal, problem: answer.problem } }
      const claim = randomUUID()
      try {
        inForce = await this.#claims.decide<Decision>(thread, proposal.id, claim, answer)
      } catch (error) {
        if (typeof this.#parts.review === 'function') throw error
        // LangGraph repeats the same answer when it retries a failed node, even if there is a newer one.
        return { proposal: { ...proposal, problem: `the last answer was not recorded: ${messageOf(error)}` } }
      }
      if (inForce.claim !== claim) throw decidedBefore(inForce)
    }
    const asked = records.filter((record) => record.type === 'decision' && record.sha256 === proposal.sha256).length
    if (proposal.problem !== null && asked > MAX_CORRECTIONS && typeof this.#parts.review === 'function')
      throw new TypeError(`${asked} scripts of the reviewer had mistakes, the last: ${proposal.problem}`)
    return this.#follow(proposal, inForce.decision, inForce.at, config)
  }

  async #decide(
    proposal: CodeProposal,
    config: LangGraphRunnableConfig,
  ): Promise<Decision | { readonly problem: string }> {
    const { review } = this.#parts
    if (typeof review === 'function') return checkDecision(await review(proposal, { signal: signalOf(config) }))
    return readAnswer(this.#graph.interrupt<CodeProposal, unknown>(proposal), proposal)
  }

  async #follow(
    proposal: CodeProposal,
    decision: Decision,
    at: string,
    config: LangGraphRunnableConfig,
  ): Promise<Update> {
    const { id, script, sha256, libraries } = proposal
    const record: CodeAgentRecord = {
      type: 'decision',
      proposal: id,
      sha256,
      decision: decision.decision,
      text: decision.decision === 'accept' ? null : decision.text,
      by: decision.by ?? null,
      at,
    }
    const decided: Update = { proposal: null, records: [record] }
    if (decision.decision === 'reject')
      return { ...decided, outcome: 'rejected', messages: [this.#result(`The reviewer ended this: ${decision.text}`)] }
    if (decision.decision !== 'accept') {
      const what = decision.decision === 'edit' ? 'asks for a change' : 'did not accept it and says'
      return { ...decided, messages: [this.#result(`The script was not run. The reviewer ${what}: ${decision.text}`)] }
    }
    const own = decision.script ?? script
    const author = own === script ? 'model' : 'reviewer'
    if (author === 'reviewer') {
      const problem = await this.#problemOf(own, libraries, config)
      if (problem !== undefined) return { ...decided, proposal: await this.#askAgain(proposal, problem) }
    }
    return { ...decided, accepted: { proposal: id, script: own, libraries, author } }
  }

  async #problemOf(
    script: string,
    libraries: readonly string[],
    config: LangGraphRunnableConfig,
  ): Promise<string | undefined> {
    const { executor, tools } = this.#parts
    const found = await executor.inspect(tools, script, libraries, { signal: signalOf(config) })
    return 'problem' in found ? found.problem : undefined
  }

  /** The same script under a new id, because a decision about the last id is already recorded. */
  async #askAgain(proposal: CodeProposal, problem: string): Promise<CodeProposal> {
    const { diff, sha256: _, id: __, ...given }: Proposal = proposal
    const { libraries, afterUncertainRun } = proposal
    return { ...(await makeProposal({ ...given, problem }, null)), diff, libraries, afterUncertainRun }
  }

  /** Runs the script, unless it may have run before. */
  async execute({ accepted, turn }: AgentValues, config: LangGraphRunnableConfig): Promise<Update> {
    if (accepted === null) return {}
    const takeOver = config.configurable?.[TAKE_OVER] === true
    const started = await this.#claims.begin(threadOf(config), turn, takeOver)
    const { proposal, script, libraries, author } = accepted
    const record = { type: 'run', proposal, script, libraries, author, at: new Date().toISOString() } as const
    if (started === undefined)
      return {
        accepted: null,
        messages: [this.#result(MAY_HAVE_RUN)],
        records: [{ ...record, outcome: 'may-have-run' }],
      }
    try {
      const content = await this.#run(accepted, signalOf(config), started.withdraw)
      return { accepted: null, messages: [this.#result(content)], records: [{ ...record, outcome: 'ran' }] }
    } finally {
      started.end()
    }
  }

  async #run(
    { script, libraries }: AcceptedScript,
    signal: AbortSignal,
    withdraw: () => Promise<void>,
  ): Promise<string | readonly ContentPart[]> {
    const { executor, tools, secrets } = this.#parts
    const responses = new ToolResponses({ secrets })
    let hasBegun = false
    try {
      const begun = (): void => {
        hasBegun = true
      }
      const output = await executor.execute(responses.wrap(tools), script, libraries, begun, { signal })
      const parts = responses.expand(truncateMiddle(output, MAX_OUTPUT_CHARS))
      const [first] = parts
      if (first === undefined) return 'The script printed nothing.'
      return parts.length === 1 && first.type === 'text' ? String(first.text) : parts
    } catch (error) {
      // The failure came before the script began, so that another try repeats nothing.
      if (!hasBegun) await withdraw()
      throw error
    }
  }

  /** Creates feedback to the model as a tool message on the thread. */
  #result(content: string | readonly ContentPart[]): BaseMessage {
    const { ToolMessage } = this.#messages
    return new ToolMessage({ content: content as string, tool_call_id: 'execution-code', name: 'execution-code' })
  }

  /** Converts tool messages, because providers accept them only after a tool call: the model writes tags and makes no calls. */
  #forModel(message: BaseMessage): BaseMessage {
    const { HumanMessage, ToolMessage } = this.#messages
    return ToolMessage.isInstance(message) ? new HumanMessage({ content: message.content }) : message
  }
}

const MAY_HAVE_RUN =
  'Error: the host ended while this script ran. It may have run, in whole or in part, and it is not run again. ' +
  'Its output is lost. Look at what it left, such as files, before you repeat a step that must not happen twice.'

function threadOf(config: LangGraphRunnableConfig): string {
  const thread: unknown = config.configurable?.['thread_id']
  if (typeof thread === 'string' && thread !== '') return thread
  throw new SandglassError('invalid_request', 'a code agent needs configurable.thread_id, a non-empty string')
}

function signalOf(config: LangGraphRunnableConfig): AbortSignal {
  return config.signal ?? new AbortController().signal
}

/** The number of replies of the model since the last message of the user. */
export function turnsOf(messages: readonly BaseMessage[]): number {
  const task = messages.findLastIndex((message) => message.getType() === 'human')
  return messages.slice(task + 1).filter((message) => message.getType() === 'ai').length
}

function taskOf(messages: readonly BaseMessage[]): string | null {
  const content = messages.findLast((message) => message.getType() === 'human')?.content
  return typeof content === 'string' ? content : null
}

/** The text of a reply around its tags. */
function planOf(reply: string): string {
  const ends = [reply.indexOf('<execution-code>'), reply.indexOf('<pip-dependencies-to-install>')].filter(
    (at) => at !== -1,
  )
  return truncateMiddle(reply.slice(0, Math.min(...ends)).trim(), MAX_PLAN_CHARS)
}
