export type { Environment } from './builder.ts'
export {
  addByteCode,
  addHomeFiles,
  COMPILE_SCRIPT,
  hasHomeFiles,
  HOME_SCRIPTS,
  isFinished,
  type MadeFile,
  markFinished,
  type Source,
  sourcesWithoutByteCode,
} from './byte-code.ts'
export { Environments, type EnvironmentSummary, type PreparedEnvironment } from './environments.ts'
export type { EnvironmentOptions, InstallProgress } from './options.ts'
export {
  type Declarer,
  explainMissingModule,
  explainModule,
  importedModules,
  requirementsOfImports,
  warnOfPip,
} from './missing-module.ts'
export { assertMaxRequirements, parseRequirements, type Requirement } from './requirement.ts'
export { assertPython } from './requires-python.ts'
export { readScriptMetadata } from './script-metadata.ts'
export { makeTemporaryCache, orphanedCaches, pruneCaches } from './temporary-cache.ts'
export { scriptPackagesText } from './trust.ts'
export { isSameTarget, type PythonTarget, targetOf } from './target.ts'
