export { type Requester, askThread, type Judgement, MAX_ANSWER_CHARS, siblingModule } from './judge-thread.ts'
