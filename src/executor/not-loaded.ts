import type { WarningCode } from '../outcomes/index.ts'
import type { Sandbox } from '../sandbox/index.ts'

const MAX_NAMED = 10

/**
 * Lists the parts that a sandbox could not load when it started, as warnings of each of its runs: readers of results would
 * otherwise look for the reason in the scripts.
 */
export function listFailedLoads({ ready: { tools, preload } }: Sandbox): { code: WarningCode; message: string }[] {
  return [
    ...warnings(tools.failed, {
      code: 'tool_not_loaded',
      one: (name) => `the tool file ${name} could not be loaded, so its functions are missing in scripts`,
      more: 'tool files could not be loaded',
    }),
    ...warnings(preload.failed, {
      code: 'preload_failed',
      one: (name) => `the module ${name} could not be preloaded`,
      more: 'modules could not be preloaded',
    }),
  ]
}

function warnings(
  failed: Sandbox['ready']['tools']['failed'],
  { code, one, more }: { code: WarningCode; one: (name: string) => string; more: string },
): { code: WarningCode; message: string }[] {
  const named = failed.slice(0, MAX_NAMED).map(({ name, message }) => ({ code, message: `${one(name)}: ${message}` }))
  const others = failed.length - named.length
  return others === 0 ? named : [...named, { code, message: `${others} more ${more}` }]
}
