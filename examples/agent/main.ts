import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { MemorySaver } from '@langchain/langgraph'
import { z } from 'zod'
import { createCodeAgent, LocalPythonExecutor } from '../../src/code-agent/index.ts'
import { defineTool, type ModelInput, replayModel } from '../../src/index.ts'
import type { Decision, Proposal } from '../../src/review.ts'

const HERE = fileURLToPath(new URL('.', import.meta.url))
const TASK = `It is 2026-11-26. The folder invoices/ has the invoices that we sent. Which are overdue, and how much is open?
Write them to overdue.csv, and send each customer one reminder.`

/**
 * A model works on a folder of invoices by scripts. Each is shown before it runs: at a terminal you decide, elsewhere all are
 * accepted. Exits with 0 when the model has answered.
 */
async function main(): Promise<number> {
  const directory = mkdtempSync(join(tmpdir(), 'sandglass-agent-'))
  const sent: string[] = []
  try {
    cpSync(join(HERE, 'invoices'), join(directory, 'invoices'), { recursive: true })
    await using executor = new LocalPythonExecutor({ workspaceDir: directory, onEvent: show })
    const agent = await createCodeAgent({
      model: await model(process.env['MODEL']),
      tools: [reminders(sent)],
      executor,
      checkpointer: new MemorySaver(),
      review: async (proposal) => {
        write(textOf(proposal))
        return process.stdin.isTTY ? ask() : accept()
      },
    })
    write(`Task\n${indent(TASK)}\n`)
    const { status, answer } = await agent.start(TASK, { thread: 'invoices' })
    write(`\nAnswer\n${indent(answer ?? status)}\n`)
    write(`Reminders\n${indent(sent.join('\n'))}\n`)
    write(`overdue.csv\n${indent(readFileSync(join(directory, 'overdue.csv'), 'utf8').trim())}\n`)
    return status === 'answered' ? 0 : 1
  } finally {
    rmSync(directory, { recursive: true })
  }
}

/** The function of this process that scripts call. */
function reminders(sent: string[]) {
  return defineTool({
    name: 'send_reminder',
    description: 'Sends a customer a reminder of open invoices.',
    input: z.object({ customer: z.string(), invoices: z.array(z.string()).min(1), total: z.number().positive() }),
    output: z.literal(['sent', 'sent before']),
    effect: 'write',
    execute: ({ customer, invoices, total }) => {
      if (sent.some((line) => line.startsWith(`${customer}:`))) return 'sent before'
      sent.push(`${customer}: ${total.toFixed(2)} open on ${invoices.join(', ')}`)
      return 'sent'
    },
  })
}

/** The chat model of LangChain that a module exports by default, or the recorded answers beside this file. */
async function model(path: string | undefined): Promise<ModelInput> {
  if (path === undefined) return replayModel(join(HERE, 'answers.jsonl'), { match: 'order' })
  const { default: chat } = (await import(pathToFileURL(resolve(path)).href)) as { default: ModelInput }
  return chat
}

function textOf({ attempt, plan, script, tools, sandbox, sha256 }: Proposal): string {
  const called = tools.map(({ name, effect }) => `${name} (${effect})`)
  return `
Script ${attempt}${plan === '' ? '' : `: ${plan}`}
${indent(script.trim(), '  | ')}
  calls     ${called.length === 0 ? 'no tools' : called.join(', ')}
  sandbox   ${sandbox.engine} (${sandbox.level}), network ${sandbox.network}
  SHA-256   ${sha256}
`
}

function accept(): Decision {
  write('  accepted, since nobody is at a terminal\nOutput\n')
  return { decision: 'accept', by: 'nobody' }
}

async function ask(): Promise<Decision> {
  const lines = createInterface({ input: process.stdin, output: process.stdout })
  try {
    const answer = await lines.question('Enter runs it; anything else goes to the model: ')
    if (answer.trim() !== '') return { decision: 'respond', text: answer }
    write('Output\n')
    return { decision: 'accept' }
  } finally {
    lines.close()
  }
}

/** Shows what a script prints while it runs. */
function show(event: { readonly type: string; readonly text?: string }): void {
  if (event.type === 'stdout' || event.type === 'stderr') write(event.text ?? '')
}

function indent(text: string, by = '  '): string {
  return text.replaceAll(/^/gm, by)
}

/** Writes a text of a model or a script without what could drive the terminal. */
function write(text: string): void {
  process.stdout.write(text.replaceAll(/[^\P{C}\n]/gu, ''))
}

process.exitCode = await main()
