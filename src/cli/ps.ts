import { type ContainerRemnant, listDockerRemnants, pruneDockerRemnants } from '../engines/docker/index.ts'
import { listRemnants, pruneRemnants, type Remnant } from '../engines/local/index.ts'
import { errnoOf, SandglassError } from '../errors/index.ts'
import type { Given } from './args.ts'
import { type Context, note } from './context.ts'
import { EXIT } from './exit-codes.ts'
import { failureOf } from './failure.ts'
import { table } from './table.ts'

/** `sandglass ps`: everything of this product on the machine. Resolves to the exit code. */
export async function ps(given: Given, context: Context): Promise<number> {
  return tell(given, context, await listRemnants(), listDockerRemnants, 'nothing of Sandglass is running or left over')
}

/** `sandglass prune`: removes what dead owners left. Resolves to the exit code. */
export async function prune(given: Given, context: Context): Promise<number> {
  return tell(given, context, await pruneRemnants(), pruneDockerRemnants, 'nothing was left over')
}

/** A line of the list, whatever engine it belongs to. */
type Line = Omit<Remnant, 'kind'> & { readonly kind: Remnant['kind'] | 'container' }

async function tell(
  given: Given,
  context: Context,
  local: readonly Remnant[],
  containers: () => Promise<readonly ContainerRemnant[]>,
  nothing: string,
): Promise<number> {
  const { found, trouble } = await asked(containers, context.env)
  const lines = [...local, ...found]
  if (given.has('--json')) await context.stdout.line(lines)
  else if (lines.length > 0) await context.stdout.write(tableOf(lines))
  else if (trouble === undefined) await context.stdout.write(`${nothing}\n`)
  if (trouble === undefined) return EXIT.ok
  await note(context, `it is unknown which containers there are: ${trouble.message}`)
  return failureOf(trouble).exitCode
}

/** The containers; where a daemon that is there does not tell them, why. */
async function asked(
  containers: () => Promise<readonly ContainerRemnant[]>,
  env: Context['env'],
): Promise<{ found: readonly Line[]; trouble?: SandglassError }> {
  try {
    return { found: (await containers()).map(lineOf) }
  } catch (error) {
    if (!(error instanceof SandglassError)) throw error
    return { found: [], ...(!isWithoutDocker(error, env) && { trouble: error }) }
  }
}

/**
 * Whether there is no Docker, and so no container: nobody named a daemon, and none listens where it would. One that was
 * named, that refuses or that hangs may have some.
 */
function isWithoutDocker({ code, cause }: SandglassError, env: Context['env']): boolean {
  if ((env['DOCKER_HOST'] ?? '') !== '') return false
  if (code === 'docker_client_missing') return true
  return code === 'docker_unreachable' && ['ENOENT', 'ECONNREFUSED'].includes(errnoOf(cause) ?? '')
}

function lineOf({ id, name, owner }: ContainerRemnant): Line {
  return { kind: 'container', id, sandbox: name, owner: owner === 'dead' ? 'gone' : owner, uid: null }
}

function tableOf(lines: readonly Line[]): string {
  const rows = lines.map(({ kind, owner, uid, sandbox, id }) => [kind, owner, String(uid ?? '-'), sandbox ?? '-', id])
  return table(['KIND', 'OWNER', 'UID', 'SANDBOX', 'ID'], rows)
}
