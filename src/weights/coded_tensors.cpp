#include "weights/coded_tensors.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace thimble {
namespace {

constexpr size_t kBlocksAtOnce = 128;
constexpr std::string_view kNf4State = ".quant_state.bitsandbytes__nf4";

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& numbers) {
  return std::as_bytes(std::span(numbers));
}

std::string part(std::string_view name, std::string_view suffix) {
  return std::string(name) + std::string(suffix);
}

template <class T>
std::vector<T> numbers_in(const SafetensorsFile& file, const std::string& name) {
  const StoredTensor& stored = file.at(name);
  std::vector<T> numbers(static_cast<size_t>(stored.type.bytes().count) / sizeof(T));
  file.read_into(name, std::as_writable_bytes(std::span(numbers)));
  return numbers;
}

// The settings that bitsandbytes keeps beside a tensor's numbers.
nlohmann::json state_in(const SafetensorsFile& file, std::string_view name) {
  const std::vector<char> text = numbers_in<char>(file, part(name, kNf4State));
  auto state = nlohmann::json::parse(text.begin(), text.end(), nullptr, false);
  user_check(state.is_object(), "'{}': the NF4 settings of '{}' are damaged", file.path(), name);
  return state;
}

}  // namespace

CodedWriter::CodedWriter(Program& program, const CodedWeight& weight)
    : program_(program),
      weight_(weight),
      nf4_(weight.matrix.elements()),
      room_(weight.matrix.format == CodedFormat::nf4 ? kBlocksAtOnce * kNf4Block
                                                     : static_cast<size_t>(weight.matrix.columns)) {
  pending_.reserve(room_);
}

void CodedWriter::add(std::span<const float> numbers) {
  while (!numbers.empty()) {
    const size_t some = std::min(room_ - pending_.size(), numbers.size());
    pending_.insert(pending_.end(), numbers.begin(),
                    numbers.begin() + static_cast<ptrdiff_t>(some));
    numbers = numbers.subspan(some);
    if (pending_.size() < room_) continue;
    weight_.matrix.format == CodedFormat::nf4 ? write_blocks() : write_row();
  }
}

void CodedWriter::check_finite(std::string_view how) const {
  const bool finite =
      std::ranges::all_of(pending_, [](float number) { return std::isfinite(number); });
  user_check(finite, "weight '{}' has numbers that are not finite{}",
             program_.graph()[weight_.values[0]].name, how);
}

// As bitsandbytes does, which rounds to f16 first.
void CodedWriter::write_row() {
  float largest = 0;
  for (float& number : pending_) {
    number = static_cast<float>(Half(number));
    largest = std::max(largest, std::fabs(number));
  }
  check_finite(" in fp16, which int8 begins with; choose --frozen nf4 or bf16");
  std::vector<int8_t> codes(pending_.size(), 0);
  const float factor = 1 / largest * 127;  // in this order
  for (size_t i = 0; i < codes.size() && largest > 0; ++i) {
    codes[i] = static_cast<int8_t>(std::nearbyint(pending_[i] * factor));
  }
  program_.write(weight_.values[0], written_, bytes_of(codes));
  const int64_t row = written_ / weight_.matrix.columns;
  program_.write(weight_.values[1], row * 4, std::as_bytes(std::span(&largest, 1)));
  written_ += std::ssize(codes);
  pending_.clear();
}

void CodedWriter::write_blocks() {
  check_finite("");
  std::vector<uint8_t> codes(static_cast<size_t>(nf4_code_bytes(std::ssize(pending_))));
  nf4_.add(pending_, codes);
  program_.write(weight_.values[0], written_, bytes_of(codes));
  written_ += std::ssize(codes);
  pending_.clear();
}

void CodedWriter::finish() {
  if (weight_.matrix.format != CodedFormat::nf4) return;
  if (!pending_.empty()) write_blocks();
  const Nf4Coder::Scales scales = nf4_.finish();
  program_.write(weight_.values[1], 0, bytes_of(scales.absmax));
  program_.write(weight_.values[2], 0, bytes_of(scales.nested));
  program_.write(weight_.values[3], 0, std::as_bytes(std::span(&scales.offset, 1)));
}

void read_coded(Program& program, const CodedWeight& weight, int64_t offset,
                std::span<std::byte> out) {
  std::vector<HostMapping> loans;
  std::vector<TensorRef> values;
  for (const ValueId value : weight.values) {
    loans.push_back(program.map_to_host(value, HostMapping::Use::read));
    values.push_back({loans.back().bytes().data(), program.graph()[value].type});
  }
  const CodedNumbers numbers = coded_numbers(weight.matrix, values);
  const int64_t columns = weight.matrix.columns;
  int64_t at = offset / static_cast<int64_t>(sizeof(float));
  std::vector<float> row(static_cast<size_t>(columns));
  for (size_t written = 0; written < out.size();) {
    const auto left = static_cast<int64_t>((out.size() - written) / sizeof(float));
    const int64_t first = at % columns, some = std::min(columns - first, left);
    numbers.decode(at / columns, first, some, row.data());
    const size_t bytes = static_cast<size_t>(some) * sizeof(float);
    std::memcpy(out.data() + written, row.data(), bytes);
    written += bytes;
    at += some;
  }
}

bool has_nf4(const SafetensorsFile& file, std::string_view name) {
  return file.find(part(name, kNf4State)) != nullptr;
}

void check_nf4(const SafetensorsFile& file, std::string_view name, const CodedMatrix& matrix) {
  const auto check = [&](bool holds, std::string_view what) {
    user_check(holds,
               "'{}': '{}' is in 4 bits with {}; make it anew with bitsandbytes' usual "
               "settings (nf4, double quantisation, blocks of 64)",
               file.path(), name, what);
  };
  const nlohmann::json state = state_in(file, name);
  const auto is = [&](const char* key, const nlohmann::json& value) {
    return state.contains(key) && state[key] == value;
  };
  check(is("quant_type", "nf4"), "other levels than NF4's");
  check(is("blocksize", kNf4Block), "blocks of another size than 64");
  check(is("nested_blocksize", kNf4Nested) && state.contains("nested_offset") &&
            state["nested_offset"].is_number(),
        "scales that are not in 8 bits themselves");
  user_check(is("shape", nlohmann::json({matrix.rows, matrix.columns})),
             "'{}': '{}' is {} in 4 bits, not {} x {}: it holds another model", file.path(), name,
             state.value("shape", nlohmann::json()).dump(), matrix.rows, matrix.columns);
  const std::vector<TensorType> types = matrix.types();
  const auto holds = [&](std::string_view suffix, int64_t bytes) {
    const StoredTensor& stored = file.at(part(name, suffix));
    user_check(stored.type.bytes().count == bytes, "'{}': '{}{}' is {}, not {} bytes", file.path(),
               name, suffix, to_string(stored.type), bytes);
  };
  holds("", types[0].bytes().count);
  holds(".absmax", types[1].bytes().count);
  holds(".nested_absmax", types[2].bytes().count);
  holds(".quant_map", int64_t{16} * 4);
  holds(".nested_quant_map", int64_t{256} * 4);
  check(std::ranges::equal(numbers_in<float>(file, part(name, ".quant_map")), kNf4Levels),
        "other levels than NF4's");
  check(
      std::ranges::equal(numbers_in<float>(file, part(name, ".nested_quant_map")), nf4_scale_map()),
      "other levels of scales");
}

void load_nf4(const SafetensorsFile& file, std::string_view name, Program& program,
              const CodedWeight& weight) {
  constexpr int64_t kPiece = 1 << 16;
  std::array<std::byte, kPiece> room;
  constexpr std::array<std::string_view, 3> kParts = {"", ".absmax", ".nested_absmax"};
  for (size_t i = 0; i < kParts.size(); ++i) {
    const StoredTensor& stored = file.at(part(name, kParts[i]));
    for (int64_t at = 0; at < stored.type.bytes().count; at += kPiece) {
      const auto piece = std::span(room).first(
          static_cast<size_t>(std::min(kPiece, stored.type.bytes().count - at)));
      file.read_part(stored, at, piece);
      program.write(weight.values[i], at, piece);
    }
  }
  const auto offset = static_cast<float>(state_in(file, name)["nested_offset"].get<double>());
  program.write(weight.values[3], 0, std::as_bytes(std::span(&offset, 1)));
}

void nf4_tensors(Program& program, const CodedWeight& weight, const std::string& name,
                 std::vector<TensorToWrite>& to) {
  const auto stored = [&](std::string_view suffix, size_t value, const Shape& shape) {
    const ValueId id = weight.values[value];
    to.push_back(
        {part(name, suffix),
         {shape, program.graph()[id].type.dtype},
         {},
         [&program, id](int64_t at, std::span<std::byte> out) { program.read(id, at, out); }});
  };
  const int64_t numbers = weight.matrix.elements();
  stored("", 0, {nf4_code_bytes(numbers), 1});
  stored(".absmax", 1, {nf4_blocks(numbers)});
  stored(".nested_absmax", 2, {nf4_nested(numbers)});
  to.push_back({part(name, ".quant_map"), {{16}}, std::as_bytes(std::span(kNf4Levels))});
  to.push_back({part(name, ".nested_quant_map"), {{256}}, std::as_bytes(nf4_scale_map())});
  float offset = 0;
  program.read(weight.values[3], 0, std::as_writable_bytes(std::span(&offset, 1)));
  const std::string state = nlohmann::json({{"quant_type", "nf4"},
                                            {"blocksize", kNf4Block},
                                            {"dtype", "float32"},
                                            {"shape", {weight.matrix.rows, weight.matrix.columns}},
                                            {"nested_blocksize", kNf4Nested},
                                            {"nested_dtype", "float32"},
                                            {"nested_offset", offset}})
                                .dump();
  to.push_back({part(name, kNf4State),
                {{std::ssize(state)}, DType::u8},
                {},
                [state](int64_t at, std::span<std::byte> out) {
                  std::memcpy(out.data(), state.data() + at, out.size());
                }});
}

}  // namespace thimble
