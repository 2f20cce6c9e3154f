import { accessSync, constants, statSync } from 'node:fs'
import { basename } from 'node:path'
import { messageOf, SandglassError } from '../errors/index.ts'
import { checkInputs, type FilesInput, type RunRequest } from '../executor/index.ts'
import { formatValue, truncate } from '../support/index.ts'
import type { Given } from './args.ts'
import { readBounded, readText } from './bounded-read.ts'
import type { Context } from './context.ts'
import { UsageError } from './failure.ts'
import { refuseHugeIntegers } from './request.ts'

/** The executor's limit for one request. */
const MAX_SCRIPT_BYTES = 32 * 1024 * 1024
const MAX_NAME = 80
const MAX_STDIN_BYTES = 16 * 1024 * 1024
const MAX_FILES_BYTES = 64 * 1024 * 1024

/**
 * Reads the script and its inputs, files and secrets from the command line of `run`.
 * @throws UsageError naming the flag.
 */
export async function runRequest(given: Given, { env, signal }: Context): Promise<Omit<RunRequest, 'tools'>> {
  const source = scriptSource(given)
  refuseStdinTwice(given, 'path' in source ? source.path : undefined, 'script')
  const input = given.last('--stdin')
  const inputs = parseInputs(given.all('--input'))
  const secrets = secretsFrom(given.all('--secret'), env)
  const files = await readFiles(given.all('--file'), signal)
  return {
    script: 'code' in source ? source.code : await readScript(source.path, signal),
    inputs,
    secrets,
    requiredSecrets: Object.keys(secrets),
    files,
    ...(input === undefined ? {} : { stdin: await readBounded(input, `--stdin ${input}`, MAX_STDIN_BYTES, signal) }),
    collect: given.all('--collect'),
  }
}

/** @throws UsageError if more than one of `first` and the files is read from stdin. */
export function refuseStdinTwice(given: Given, first: string | undefined, what: 'script' | 'task'): void {
  const hosts = given.all('--file').map((text) => hostAndPath(text)[0])
  if ([first, ...hosts, ...given.all('--stdin')].filter((one) => one === '-').length > 1) {
    const places = what === 'task' ? 'the task and --file' : 'the script, --file and --stdin'
    throw new UsageError('invalid_request', `stdin is used twice: only one of ${places} can be -`)
  }
}

/** The source of the script of `run`: a file, stdin (`-`), or the command line. */
type ScriptSource = ({ readonly path: string } | { readonly code: string }) & {
  /** Its name in messages. */
  readonly name: string
}

function readScript(path: string, signal: AbortSignal): Promise<string> {
  return readText(path, path === '-' ? 'the script on stdin' : path, MAX_SCRIPT_BYTES, signal)
}

/** @throws UsageError without a script, or with two. */
export function scriptSource(given: Given): ScriptSource {
  const [path, ...others] = given.positionals
  const [code, ...more] = given.all('-c')
  if (more.length > 0) throw new UsageError('invalid_request', 'run takes one -c CODE')
  if (code !== undefined) {
    if (path === undefined) return { code, name: '-c' }
    throw new UsageError('invalid_request', `run takes -c CODE or a FILE, but also got ${JSON.stringify(path)}`)
  }
  if (path === undefined) {
    throw new UsageError('invalid_request', 'run needs a FILE, - for stdin, or -c CODE; see sandglass run --help')
  }
  if (others.length > 0) {
    throw new UsageError('invalid_request', `run takes one FILE, but also got ${JSON.stringify(others[0])}`)
  }
  return { path, name: path === '-' ? '<stdin>' : path }
}

/** The values of `--input`, by name. @throws UsageError. */
export function parseInputs(texts: readonly string[]): Record<string, unknown> {
  const entries = texts.map((text): [string, unknown] => {
    const [given, json] = splitAt(text, text.indexOf('='))
    if (json === undefined) throw new UsageError('invalid_request', `--input ${text}: write NAME=JSON`)
    const name = inputName(given)
    try {
      refuseHugeIntegers(json)
      return [name, JSON.parse(json)]
    } catch (error) {
      if (error instanceof UsageError) throw new UsageError(error.code, `--input ${name}: ${error.message}`)
      throw new UsageError(
        'invalid_request',
        `--input ${name}: ${formatValue(json)} is not JSON; write a text as --input '${name}="…"'`,
      )
    }
  })
  refuseTwice('--input', entries)
  return Object.fromEntries(entries)
}

/** A name that a script can have as a global, by the executor's own rule. @throws UsageError. */
export function inputName(name: string): string {
  try {
    checkInputs({ [name]: null })
    return name
  } catch (error) {
    if (!(error instanceof SandglassError)) throw error
    const shown = truncate(name, MAX_NAME)
    throw new UsageError(error.code, error.message.replace(/^inputs:/, `--input ${shown}:`), { cause: error })
  }
}

/** The values of the variables that `--secret` names. @throws UsageError. */
export function secretsFrom(names: readonly string[], env: NodeJS.ProcessEnv): Record<string, string> {
  const entries = names.map((name): [string, string] => {
    const value = Object.hasOwn(env, name) ? env[name] : undefined
    if (value === undefined) {
      const hint = name.includes('=') ? ' (give the name only: the value is read from the environment)' : ''
      throw new UsageError(
        'invalid_request',
        `--secret ${splitAt(name, name.indexOf('='))[0]}: no such environment variable is set${hint}`,
      )
    }
    return [name, value]
  })
  return Object.fromEntries(entries)
}

/** The files of `--file`, by their paths in the sandbox. Only files that are not regular are read already. @throws UsageError. */
export async function readFiles(given: readonly string[], signal: AbortSignal): Promise<FilesInput> {
  const entries: [string, FilesInput[string]][] = []
  let room = MAX_FILES_BYTES
  for (const text of given) {
    const [host, named] = hostAndPath(text)
    if (host === '' || named === '') throw new UsageError('invalid_request', `--file ${text}: write HOST or HOST:PATH`)
    const path = named ?? basename(host)
    const mode = modeOf(host)
    if (mode !== undefined) {
      entries.push([path, { path: host, mode }])
      continue
    }
    const content = await readBounded(host, `--file ${host}`, room, signal)
    room -= content.length
    entries.push([path, content])
  }
  refuseTwice('--file', entries)
  return Object.fromEntries(entries)
}

/** Splits the value of `--file`. @throws UsageError. */
export function hostAndPath(text: string): [string, string | undefined] {
  return splitAt(text, text.lastIndexOf(':'))
}

/** The mode that a regular file gets; undefined for stdin, a pipe or a directory. @throws UsageError if it cannot be read. */
function modeOf(host: string): number | undefined {
  if (host === '-') return undefined
  try {
    const found = statSync(host)
    accessSync(host, constants.R_OK)
    if (!found.isFile()) return undefined
    return (found.mode & 0o111) === 0 ? 0o644 : 0o755
  } catch (error) {
    throw new UsageError('invalid_request', `cannot read --file ${host}: ${messageOf(error)}`, { cause: error })
  }
}

/** The parts before and after a position; without a second part if the position is -1. */
function splitAt(text: string, at: number): [string, string | undefined] {
  return at === -1 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)]
}

function refuseTwice(flag: string, entries: readonly (readonly [string, unknown])[]): void {
  const names = entries.map(([name]) => name)
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice !== undefined) throw new UsageError('invalid_request', `${flag}: ${JSON.stringify(twice)} is given twice`)
}
