import type { EngineModule, ReportLine } from '../../sandbox/index.ts'
import { localEngine } from './engine.ts'
import type { LocalEngineOptions } from './options.ts'
import { pruneOrphans } from './orphans.ts'
import { listResources } from './resources.ts'

/** The engine `local` for the table of engines. */
export const localModule: EngineModule<LocalEngineOptions> = {
  makeEngine: localEngine,
  reportLines: ({
    python_version: version,
    python,
    python_passed_over: passedOver,
    bwrap,
    state_dir: state,
    kernel,
  }) => [
    ['python', `${String(version)} (${String(python)})`],
    ...(Array.isArray(passedOver) ? (passedOver as readonly string[]) : []).map((text): ReportLine => [
      'passed over',
      text,
    ]),
    ['bubblewrap', String(bwrap)],
    ['state', String(state)],
    ['kernel', String(kernel)],
  ],
  listResources: () => listResources(),
  pruneOrphans: () => pruneOrphans(),
}
