import type { Sandbox } from '../sandbox/index.ts'

const MAX_NAMED = 10

/**
 * What a sandbox could not load when it started, as warnings of each of its runs: whoever sees only results would else
 * look for the reason in the scripts.
 */
export function notLoaded({ ready: { tools, preload } }: Sandbox): { code: string; message: string }[] {
  return [
    ...warnings(tools.failed, {
      code: 'tool_not_loaded',
      one: (name) => `the tool file ${name} could not be loaded and scripts lack what it defines`,
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
  { code, one, more }: { code: string; one: (name: string) => string; more: string },
): { code: string; message: string }[] {
  const named = failed.slice(0, MAX_NAMED).map(({ name, message }) => ({ code, message: `${one(name)}: ${message}` }))
  const others = failed.length - named.length
  return others === 0 ? named : [...named, { code, message: `${others} more ${more}` }]
}
