// Frozen matrices in few bits, as numbers: in and out a piece at a time, so that their f32 numbers
// never exist whole.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/nf4.h"
#include "execute/program.h"
#include "graph/coded_weight.h"
#include "weights/safetensors.h"

namespace thimble {

// Numbers that come in order become codes and scales.
class CodedWriter {
 public:
  CodedWriter(Program& program, const CodedWeight& weight);

  // UserError where a number is not finite in the format.
  void add(std::span<const float> numbers);
  // REQUIRES: all numbers were added.
  void finish();

 private:
  // UserError, naming the weight, where a number that waits is infinite or none.
  void check_finite(std::string_view how) const;
  void write_row();
  void write_blocks();

  Program& program_;
  const CodedWeight& weight_;
  Nf4Coder nf4_;
  std::vector<float> pending_;  // int8: a row; nf4: whole blocks
  size_t room_;
  int64_t written_ = 0;
};

// Decoded, as f32: bytes [offset, offset + size).
void read_coded(Program& program, const CodedWeight& weight, int64_t offset,
                std::span<std::byte> out);

// Whether the file has a tensor of that name as bitsandbytes stores it in 4 bits.
bool has_nf4(const SafetensorsFile& file, std::string_view name);
// UserError unless the file's codes are of that matrix in NF4, with double quantisation, blocks of
// 64 and the usual tables.
void check_nf4(const SafetensorsFile& file, std::string_view name, const CodedMatrix& matrix);
// Appends the tensors of a matrix in NF4 as check_nf4 wants them, to be fetched from the program.
void nf4_tensors(Program& program, const CodedWeight& weight, const std::string& name,
                 std::vector<TensorToWrite>& to);
// REQUIRES: check_nf4 has passed.
void load_nf4(const SafetensorsFile& file, std::string_view name, Program& program,
              const CodedWeight& weight);

}  // namespace thimble
