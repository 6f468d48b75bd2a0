use super::instruction::Instruction;
use super::memory::{Access, CALLER, CODE, Fault, LOCKS, Refusal, Word, word_at};
use super::program::Program;
use super::register::Register;
use super::state::{CALLER_NEXT, Phase, State};

/// An instruction that the kernel must handle. It has had no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exception {
    Syscall,
    Fault(Fault),
}

/// Executes the instruction at a process's pc.
///
/// # Errors
/// It raised an exception, and the state is unchanged.
pub(super) fn execute<const N: usize>(
    program: &Program,
    state: &mut State<N>,
    who: usize,
) -> Result<(), Exception> {
    use Instruction as I;
    let process = state.processes[who];
    let get = |register| process.get(register);
    let pc = usize::from(process.pc);
    let address_of = |base: Register, offset: i16| get(base).wrapping_add_signed(i32::from(offset));
    let read = |address| word_at(address, Access::Read).map_err(Exception::Fault);
    let write = |address| word_at(address, Access::Write).map_err(Exception::Fault);
    let Some(instruction) = program.instruction(pc) else {
        return Err(no_instruction(CODE + 4 * pc as u32));
    };

    let mut written = None;
    let mut jump = None;
    match instruction {
        I::Lw { base, offset, .. } => {
            written = Some(state.load(who, read(address_of(base, offset))?));
        }
        I::Ll { base, offset, .. } => {
            let word = read(address_of(base, offset))?;
            written = Some(state.load(who, word));
            state.processes[who].link = link(word);
        }
        I::Sw { rt, base, offset } => {
            let word = write(address_of(base, offset))?;
            state.store(who, word, get(rt));
        }
        I::Sc { rt, base, offset } => {
            let word = write(address_of(base, offset))?;
            let linked = process.link != 0 && process.link == link(word);
            if linked {
                state.store(who, word, get(rt));
            }
            state.processes[who].link = 0;
            written = Some(u32::from(linked));
        }
        I::Addu { rs, rt, .. } => written = Some(get(rs).wrapping_add(get(rt))),
        I::Or { rs, rt, .. } => written = Some(get(rs) | get(rt)),
        I::Addiu { rs, immediate, .. } => {
            written = Some(get(rs).wrapping_add_signed(i32::from(immediate)));
        }
        I::Lui { immediate, .. } => written = Some(u32::from(immediate) << 16),
        I::Sll { rt, shift, .. } => written = Some(get(rt) << shift),
        I::Beq { rs, rt, .. } if get(rs) == get(rt) => jump = Some(branch_target(program, instruction, pc)?),
        I::Bne { rs, rt, .. } if get(rs) != get(rt) => jump = Some(branch_target(program, instruction, pc)?),
        I::Beq { .. } | I::Bne { .. } => {}
        I::Jr { rs } => jump = Some(jump_target(program, get(rs))?),
        I::Di => state.processes[who].interrupts = false,
        I::Ei => state.processes[who].interrupts = true,
        I::Syscall => return Err(Exception::Syscall),
    }

    let process = &mut state.processes[who];
    if let (Some(register), Some(value)) = (instruction.written(), written) {
        process.set(register, value);
    }
    process.phase = if instruction.jumps() { Phase::Slot } else { Phase::Inside };
    process.pc = process.next;
    process.next = jump.unwrap_or(process.pc.saturating_add(1));
    Ok(())
}

/// Encodes a link to a word for `Process::link`.
pub(super) fn link(word: Word) -> u8 {
    match word {
        Word::Lock(number) => number + 1,
        Word::Preempted => LOCKS as u8 + 1,
    }
}

fn branch_target(program: &Program, instruction: Instruction, pc: usize) -> Result<u8, Exception> {
    let target = instruction.target(pc).unwrap_or(-1);
    let address = CODE.wrapping_add_signed(4 * target as i32);
    program.number(target).ok_or(no_instruction(address))
}

/// Returns the target of a jump. Hardware takes a bad one and then fails to fetch; the model fails at the jump.
fn jump_target(program: &Program, address: u32) -> Result<u8, Exception> {
    if address == CALLER {
        return Ok(CALLER_NEXT);
    }
    if !address.is_multiple_of(4) {
        let refusal = Refusal::Unaligned;
        return Err(Exception::Fault(Fault { access: Access::Execute, address, refusal }));
    }
    let number = i64::from(address.wrapping_sub(CODE).cast_signed()) / 4;
    program.number(number).ok_or(no_instruction(address))
}

fn no_instruction(address: u32) -> Exception {
    Exception::Fault(Fault { access: Access::Execute, address, refusal: Refusal::NoPage })
}
