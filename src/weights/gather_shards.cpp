#include "weights/gather_shards.h"

#include "base/error.h"
#include "comm/communicator.h"

namespace thimble {
namespace {

// The part of bytes [offset, offset + size) of the full tensor in the shard of one rank.
struct Overlap {
  int64_t in_part = 0;   // first byte, from the part's start
  int64_t in_range = 0;  // the same, from the range's
  int64_t size = 0;      // at most 0: nothing
};

Overlap overlap_of(int64_t part, int rank, int64_t offset, int64_t size) {
  const int64_t begin = std::max(offset, rank * part);
  const int64_t end = std::min(offset + size, (rank + 1) * part);
  return {begin - rank * part, begin - offset, end - begin};
}

int rank_of(const Program& program) {
  return program.ranks() == nullptr ? 0 : program.ranks()->rank();
}

}  // namespace

TensorType whole_type(const Value& value) {
  return value.is_shard() ? TensorType{value.unsharded, value.type.dtype} : value.type;
}

void read_whole(Program& program, ValueId value, int64_t offset, std::span<std::byte> out) {
  const Value& kept = program.graph()[value];
  if (!kept.is_shard()) return program.read(value, offset, out);
  Communicator* const ranks = program.ranks();
  internal_check(ranks != nullptr, "parts of a tensor, and no ranks that have the others");
  for (int k = 0; k < ranks->size(); ++k) {
    const Overlap here = overlap_of(kept.type.bytes().count, k, offset, std::ssize(out));
    if (here.size <= 0) continue;
    const auto piece =
        out.subspan(static_cast<size_t>(here.in_range), static_cast<size_t>(here.size));
    if (k == ranks->rank()) program.read(value, here.in_part, piece);
    ranks->broadcast(piece, k);
  }
}

void write_whole(Program& program, ValueId value, int64_t offset, std::span<const std::byte> in) {
  const Value& kept = program.graph()[value];
  if (!kept.is_shard()) return program.write(value, offset, in);
  const Overlap here =
      overlap_of(kept.type.bytes().count, rank_of(program), offset, std::ssize(in));
  if (here.size <= 0) return;
  program.write(value, here.in_part,
                in.subspan(static_cast<size_t>(here.in_range), static_cast<size_t>(here.size)));
}

int64_t first_element(const Program& program, ValueId value) {
  const Value& kept = program.graph()[value];
  return kept.is_shard() ? rank_of(program) * kept.type.elements() : 0;
}

}  // namespace thimble
