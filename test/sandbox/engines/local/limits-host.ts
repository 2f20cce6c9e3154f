/**
 * A separate host process, so that tests can run it without control groups. `limits-host.ts '{"runs": […]}'` creates a
 * Sandglass, runs each script with its limits, and prints the outcomes as JSON.
 */
import { createSandglass, type ResourceLimits, SandglassError } from '../../../../src/index.ts'

/** The argument of this program. */
export interface LimitsOrder {
  readonly limits?: ResourceLimits
  /** Limits of each run, and its script. */
  readonly runs?: readonly { readonly limits: ResourceLimits; readonly script: string }[]
}

/** The outcome of one run, or of `createSandglass` if that fails. */
export interface Outcome {
  readonly refused?: { readonly code: string; readonly message: string }
  readonly limitsEnforced?: readonly string[]
  readonly finalData?: unknown
}

const order = JSON.parse(process.argv[2] ?? '') as LimitsOrder
console.log(JSON.stringify(await outcomes(order)))

async function outcomes({ limits = {}, runs = [] }: LimitsOrder): Promise<Outcome[]> {
  try {
    await using sandglass = await createSandglass({ engine: 'local', limits, poolSize: 1 })
    const found: Outcome[] = []
    for (const run of runs) {
      const one = sandglass.run(run.script, { limits: run.limits })
      found.push(await one.then(({ sandbox, finalData }) => ({ ...limitsOf(sandbox), finalData }), describeRefusal))
    }
    return found
  } catch (error) {
    return [describeRefusal(error)]
  }
}

function limitsOf({ limitsEnforced }: { readonly limitsEnforced: readonly string[] }): Outcome {
  return { limitsEnforced }
}

function describeRefusal(error: unknown): Outcome {
  if (!(error instanceof SandglassError)) throw error
  return { refused: { code: error.code, message: error.message } }
}
