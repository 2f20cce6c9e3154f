import { storeInDirectory } from '../artifacts/index.ts'
import type { FilesInput } from '../executor/index.ts'
import type { Sandglass, Workspace } from '../index.ts'
import type { Given } from './args.ts'
import type { Context } from './context.ts'
import { UsageError } from './failure.ts'
import { hostAndPath, readFiles, secretsFrom } from './run-request.ts'
import { storeDirectory } from './store-directory.ts'
import { TransferLine } from './transfer.ts'

/** The flags that `exec` and `shell` share, as options of a program. */
export function programOptions(
  given: Given,
  { env }: Context,
): { readonly env: Record<string, string>; readonly secrets: Record<string, string>; readonly cwd?: string } {
  const variables = Object.fromEntries(given.all('--env').map(variable))
  const cwd = given.last('--cwd')
  return { env: variables, secrets: secretsFrom(given.all('--secret'), env), ...(cwd === undefined ? {} : { cwd }) }
}

/** The files of `--file`. Stdin is none of them: the program has it. @throws UsageError */
export function programFiles(given: Given, { signal }: Context): Promise<FilesInput> {
  const files = given.all('--file')
  if (files.some((text) => hostAndPath(text)[0] === '-')) throw usage('--file -: stdin goes to the program')
  return readFiles(files, signal)
}

/** Puts files into a workspace. @param isWanted true to show a person the progress of a long transfer. */
export async function withFiles(
  sandglass: Sandglass,
  flags: Given,
  given: FilesInput,
  context: Context,
  isWanted: boolean,
  id: string | undefined,
): Promise<Workspace> {
  await using transfer = new TransferLine(given, context, isWanted)
  const kept = id === undefined ? {} : { persist: id, store: storeInDirectory(storeDirectory(flags, context.env)) }
  return await sandglass.workspace({ files: transfer.files, signal: context.signal, ...kept })
}

function variable(text: string): [string, string] {
  const at = text.indexOf('=')
  if (at < 1) throw usage(`--env ${JSON.stringify(text)}: write NAME=VALUE`)
  return [text.slice(0, at), text.slice(at + 1)]
}

function usage(message: string): UsageError {
  return new UsageError('invalid_request', message)
}
