import { listRemnants, pruneRemnants, type Remnant } from '../engines/local/index.ts'
import type { Given } from './args.ts'
import type { Context } from './context.ts'
import { EXIT } from './exit-codes.ts'

/** `sandglass ps`: everything of this product on the machine. Resolves to the exit code. */
export async function ps(given: Given, context: Context): Promise<number> {
  const found = await listRemnants()
  await tell(given, context, found, 'nothing of Sandglass is running or left over')
  return EXIT.ok
}

/** `sandglass prune`: removes what dead owners left. Resolves to the exit code. */
export async function prune(given: Given, context: Context): Promise<number> {
  const removed = await pruneRemnants()
  await tell(given, context, removed, 'nothing was left over')
  return EXIT.ok
}

async function tell(given: Given, { stdout }: Context, remnants: readonly Remnant[], nothing: string): Promise<void> {
  if (given.has('--json')) return stdout.line(remnants)
  return stdout.write(remnants.length === 0 ? `${nothing}\n` : table(remnants))
}

function table(remnants: readonly Remnant[]): string {
  const rows = remnants.map(({ kind, owner, uid, sandbox, id }) => [
    kind,
    owner,
    String(uid ?? '-'),
    sandbox ?? '-',
    id,
  ])
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
