import { type ContainerRemnant, listDockerRemnants, pruneDockerRemnants } from '../engines/docker/index.ts'
import { listRemnants, pruneRemnants, type Remnant } from '../engines/local/index.ts'
import { messageOf, SandglassError } from '../errors/index.ts'
import type { Given } from './args.ts'
import type { Context } from './context.ts'
import { EXIT } from './exit-codes.ts'

/** `sandglass ps`: everything of this product on the machine. Resolves to the exit code. */
export async function ps(given: Given, context: Context): Promise<number> {
  const found = [...(await listRemnants()), ...(await containers(context, listDockerRemnants))]
  await tell(given, context, found, 'nothing of Sandglass is running or left over')
  return EXIT.ok
}

/** `sandglass prune`: removes what dead owners left. Resolves to the exit code. */
export async function prune(given: Given, context: Context): Promise<number> {
  const removed = [...(await pruneRemnants()), ...(await containers(context, pruneDockerRemnants))]
  await tell(given, context, removed, 'nothing was left over')
  return EXIT.ok
}

/** A line of the list, whatever engine it belongs to. */
type Line = Omit<Remnant, 'kind'> & { readonly kind: Remnant['kind'] | 'container' }

/** A machine without Docker has no containers; one whose daemon refuses may have some, and that is told. */
async function containers(
  { stderr }: Context,
  ask: () => Promise<readonly ContainerRemnant[]>,
): Promise<readonly Line[]> {
  try {
    return (await ask()).map(lineOf)
  } catch (error) {
    if (!(error instanceof SandglassError)) throw error
    if (!ABSENT.includes(error.code)) await stderr.write(`sandglass: containers are not listed: ${messageOf(error)}\n`)
    return []
  }
}

const ABSENT: readonly SandglassError['code'][] = ['docker_client_missing', 'docker_unreachable']

function lineOf({ id, name, owner }: ContainerRemnant): Line {
  return { kind: 'container', id, sandbox: name, owner: owner === 'dead' ? 'gone' : owner, uid: null }
}

async function tell(given: Given, { stdout }: Context, lines: readonly Line[], nothing: string): Promise<void> {
  if (given.has('--json')) return stdout.line(lines)
  return stdout.write(lines.length === 0 ? `${nothing}\n` : table(lines))
}

function table(lines: readonly Line[]): string {
  const rows = lines.map(({ kind, owner, uid, sandbox, id }) => [kind, owner, String(uid ?? '-'), sandbox ?? '-', id])
  const all = [['KIND', 'OWNER', 'UID', 'SANDBOX', 'ID'], ...rows]
  const widths = all[0]?.map((_, column) => Math.max(...all.map((cells) => cells[column]?.length ?? 0))) ?? []
  return all
    .map(
      (cells) =>
        `${cells
          .map((cell, column) => cell.padEnd(widths[column] ?? 0))
          .join('  ')
          .trimEnd()}\n`,
    )
    .join('')
}
