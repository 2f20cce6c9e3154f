import { orphanedCaches, pruneCaches } from '../environments/index.ts'
import { SandglassError } from '../errors/index.ts'
import type { EngineModule, Resource } from '../sandbox/index.ts'
import type { Given } from './args.ts'
import { type Context, note } from './context.ts'
import { EXIT } from './exit-codes.ts'
import { failureOf } from './failure.ts'
import { enginesToAsk } from './options.ts'
import { table } from './table.ts'

/** `sandglass ps`: every resource of Sandglass on the machine. Resolves to the exit code. */
export function ps(given: Given, context: Context): Promise<number> {
  const caches = async (): Promise<readonly Resource[]> => orphanedCaches()
  return printResources(
    'list',
    given,
    context,
    (engine, options) => engine.listResources?.(options),
    caches,
    'Sandglass has no resources here',
  )
}

/** `sandglass prune`: removes the resources of dead owners. Resolves to the exit code. */
export function prune(given: Given, context: Context): Promise<number> {
  return printResources(
    'remove',
    given,
    context,
    (engine, options) => engine.pruneOrphans?.(options),
    pruneCaches,
    'nothing was orphaned',
  )
}

/** One of the operations of an engine on its resources, with the options that flags gave. */
type Operation = (engine: EngineModule, options: object) => Promise<readonly Resource[]> | undefined

async function printResources(
  verb: 'list' | 'remove',
  given: Given,
  context: Context,
  operation: Operation,
  cacheOperation: () => Promise<readonly Resource[]>,
  nothing: string,
): Promise<number> {
  const { resources: found, problems } = await runOnEngines(given, context, operation)
  // Caches belong to no engine.
  const resources = [...found, ...((given.last('--engine') ?? 'auto') === 'auto' ? await cacheOperation() : [])]
  if (given.has('--json')) await context.stdout.line(resources)
  else if (resources.length > 0) await context.stdout.write(tableOf(resources))
  else if (problems.length === 0) await context.stdout.write(`${nothing}\n`)
  for (const { engine, error } of problems) {
    await note(context, `cannot ${verb} the resources of the engine ${engine}: ${error.message}`)
  }
  const [first] = problems
  return first === undefined ? EXIT.ok : failureOf(first.error).exitCode
}

/** Runs an operation on all engines. Returns their resources, and the error of each engine that failed. */
async function runOnEngines(
  given: Given,
  { engines }: Context,
  operation: Operation,
): Promise<{ resources: Resource[]; problems: { engine: string; error: SandglassError }[] }> {
  const resources: Resource[] = []
  const problems: { engine: string; error: SandglassError }[] = []
  for (const { name: engine, row, options } of enginesToAsk(given, engines)) {
    try {
      resources.push(...((await operation(await row.load(), options)) ?? []))
    } catch (error) {
      if (!(error instanceof SandglassError)) throw error
      problems.push({ engine, error })
    }
  }
  return { resources, problems }
}

function tableOf(resources: readonly Resource[]): string {
  const rows = resources.map(({ kind, owner, uid, sandbox, id }) => [
    kind,
    owner,
    String(uid ?? '-'),
    sandbox ?? '-',
    id,
  ])
  return table(['KIND', 'OWNER', 'UID', 'SANDBOX', 'ID'], rows)
}
