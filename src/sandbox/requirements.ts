import { SandglassError } from '../errors/index.ts'
import type { IsolationLevel, SandboxReport } from './contract.ts'

/**
 * An item that a caller can require: an enforced limit, no network, a protection, or a minimum level.
 */
export type Requirement =
  | 'memory'
  | 'pids'
  | 'cpu'
  | 'disk'
  | 'output'
  | 'wall'
  | 'network'
  | 'system-call-filter'
  | 'uid-per-sandbox'
  | Exclude<IsolationLevel, 'none'>

const LEVELS: readonly IsolationLevel[] = ['none', 'language-only', 'os-sandbox', 'container', 'gvisor', 'vm']

/** Every name that `require` takes. */
export const REQUIREMENTS: readonly Requirement[] = [
  'memory',
  'pids',
  'cpu',
  'disk',
  'output',
  'wall',
  'network',
  'system-call-filter',
  'uid-per-sandbox',
  'language-only',
  'os-sandbox',
  'container',
  'gvisor',
  'vm',
]

/**
 * Checks the requirements of a caller against a report.
 * @throws SandglassError `requirement_unmet`, naming every missing item.
 */
export function assertRequirements(report: SandboxReport, required: readonly Requirement[]): void {
  const missing = required.filter((item) => !isMet(report, item))
  if (missing.length === 0) return
  const why = report.reasons.map((reason) => reason.message).join('; ')
  throw new SandglassError(
    'requirement_unmet',
    `the engine ${report.engine} does not provide ${missing.join(', ')} on this machine` +
      ` (it has: level ${report.level}, limits ${report.limitsEnforced.join(', ') || 'none'}, network ${report.network})` +
      `${why === '' ? '' : `: ${why}`}`,
  )
}

/**
 * Checks the report of an engine that starts sandboxes.
 * @throws SandglassError `requirement_unmet` if the report failed all the same: it shows nothing.
 */
export function assertShown({ engine, usable, reasons }: SandboxReport, required: readonly Requirement[]): void {
  if (usable) return
  const why = reasons.map((reason) => reason.message).join('; ')
  throw new SandglassError(
    'requirement_unmet',
    `the engine ${engine} starts sandboxes, but cannot show that they have ${required.join(', ')}: ${why}`,
  )
}

function isMet(report: SandboxReport, item: Requirement): boolean {
  switch (item) {
    case 'memory':
    case 'pids':
    case 'cpu':
    case 'disk':
    case 'output':
    case 'wall':
      return report.limitsEnforced.includes(item)
    case 'network':
      return report.network === 'none'
    case 'system-call-filter':
      return report.capabilities.systemCallFilter
    case 'uid-per-sandbox':
      return report.capabilities.uidPerSandbox
    case 'language-only':
    case 'os-sandbox':
    case 'container':
    case 'gvisor':
    case 'vm':
      return LEVELS.indexOf(report.level) >= LEVELS.indexOf(item)
  }
}
