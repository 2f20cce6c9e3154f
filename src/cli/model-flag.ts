import { appendFileSync, statSync } from 'node:fs'
import { messageOf } from '../errors/index.ts'
import { callerOf, chatCompletions, type LLMCaller, type ModelInput, recordModel, replayModel } from '../llm/index.ts'
import { truncate } from '../support/index.ts'
import type { Given } from './args.ts'
import { UsageError } from './failure.ts'
import type { CommandName } from './flags.ts'
import { importModule } from './tools-file.ts'

const REPLAY = 'replay:'
const MODULE = /\.[cm]?[jt]s$/
const OPENAI_URL = 'https://api.openai.com/v1'
const MAX_WORD = 200
const KEY_NAME = 'OPENAI_API_KEY'

/** The model of `solve` and `agent`. */
export interface ChosenModel {
  readonly call: LLMCaller
  /** Values that no journal may hold, by name. */
  readonly hide: Readonly<Record<string, string>>
}

/**
 * The model that `--model` names: `replay:FILE`, a module, or a name at an OpenAI-compatible address. With `--record` its
 * answers are written down.
 * @throws UsageError naming the flag and what to write.
 */
export async function modelOf(
  given: Given,
  env: NodeJS.ProcessEnv,
  command: CommandName = 'solve',
): Promise<ChosenModel> {
  const name = given.last('--model') ?? ''
  if (name === '')
    throw wrong(`${command} needs --model MODEL: a name, replay:FILE or a module; see sandglass ${command} --help`)
  const isReplay = name.startsWith(REPLAY)
  if ((isReplay || MODULE.test(name)) && given.has('--model-url')) {
    throw wrong(
      `--model-url belongs to a model that is named, and --model ${name} is ${isReplay ? 'a recording' : 'a module'}`,
    )
  }
  if (!isReplay && !MODULE.test(name)) refuseFile(name)
  const chosen = isReplay
    ? { call: openRecording(name), hide: {} }
    : MODULE.test(name)
      ? { call: await importModel(name), hide: {} }
      : connectModel(name, given, env)
  const record = given.last('--record')
  return record === undefined ? chosen : { ...chosen, call: recordModel(assertWritable(record), chosen.call) }
}

function openRecording(name: string): LLMCaller {
  const file = name.slice(REPLAY.length)
  try {
    return replayModel(file, { match: 'order' })
  } catch (error) {
    throw wrong(`--model ${name}: ${messageOf(error).replace(/^replayModel: /, '')}`, error)
  }
}

async function importModel(path: string): Promise<LLMCaller> {
  const module = await importModule('--model', path)
  const model = module['default'] ?? module['model']
  if (model === undefined) {
    throw wrong(`--model ${path}: it exports no model; export default async (prompt) => ({ text: '…' })`)
  }
  try {
    return callerOf(model as ModelInput)
  } catch (error) {
    throw wrong(`--model ${path}: ${messageOf(error)}`, error)
  }
}

/** Refuses a name that is the path of a file: it must not be sent to an address. */
function refuseFile(name: string): void {
  const isPath = /^\.{0,2}\//.test(name)
  if (!isPath && !isFile(name)) return
  const module = ['.ts', '.js', '.mjs'].map((end) => `${name}${end}`).find(isFile)
  const hint = module === undefined ? `replay:${name}, or a module that ends in .ts or .js` : module
  const is = isFile(name) ? 'it is a file, not the name of a model' : 'it is a path, not the name of a model'
  throw wrong(`--model ${name}: ${is}. Did you mean ${hint}?`)
}

function isFile(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isFile() === true
  } catch {
    return false
  }
}

function connectModel(model: string, given: Given, env: NodeJS.ProcessEnv): ChosenModel {
  const apiKey = env[KEY_NAME] === '' ? undefined : env[KEY_NAME]
  const givenUrl = given.last('--model-url') ?? (env['OPENAI_BASE_URL'] === '' ? undefined : env['OPENAI_BASE_URL'])
  const url = givenUrl ?? OPENAI_URL
  const source = given.has('--model-url') ? '--model-url' : 'OPENAI_BASE_URL'
  if (givenUrl === undefined && apiKey === undefined) {
    throw wrong(
      `--model ${model}: ${KEY_NAME} is not set; set it, name another address with --model-url (http://127.0.0.1:11434/v1), or use replay:FILE or a module`,
    )
  }
  // Messages about the address would show them.
  if (URL.canParse(url) && `${new URL(url).username}${new URL(url).password}` !== '') {
    throw wrong(`${source}: the address must not contain a name or password; put the key into ${KEY_NAME}`)
  }
  try {
    return {
      call: chatCompletions({ url, model, apiKey }),
      hide: apiKey === undefined ? {} : { [KEY_NAME]: apiKey },
    }
  } catch (error) {
    throw wrong(`${source}: ${messageOf(error).replace(/^chatCompletions: /, '')}`, error)
  }
}

function assertWritable(file: string): string {
  try {
    appendFileSync(file, '')
    return file
  } catch (error) {
    throw wrong(`--record ${file}: ${messageOf(error)}`, error)
  }
}

function wrong(message: string, cause?: unknown): UsageError {
  // Names and paths in the message can have any length.
  const short = message.replaceAll(/\S{200,}/g, (word) => truncate(word, MAX_WORD))
  return new UsageError('invalid_request', short, { cause })
}
