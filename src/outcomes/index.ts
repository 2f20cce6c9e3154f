export {
  type EndingOutcomeName,
  type ErrorKind,
  type ExecutionStatus,
  isSuccess,
  LATE_ERROR_CODES,
  OUTCOME_OF_CAUSE,
  outcomeOfWireKind,
  type OutcomeName,
  type OutcomeRow,
  OUTCOMES,
  type RunOutcomeName,
  type Status,
  statusFields,
} from './outcomes.ts'
export { type TaskStatus, TASK_OUTCOMES } from './task-outcomes.ts'
export { isWarningCode, WARNING_CODES, type WarningCode } from './warnings.ts'
