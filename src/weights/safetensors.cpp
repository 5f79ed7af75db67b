#include "weights/safetensors.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "weights/safetensors_header.h"

namespace thimble {
namespace {

constexpr int64_t kLengthBytes = 8;
constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // the format's own limit
constexpr int64_t kChunkBytes = int64_t{256} * 1024;

std::array<std::byte, kLengthBytes> little_endian(uint64_t value) {
  std::array<std::byte, kLengthBytes> bytes;
  for (std::byte& byte : bytes) {
    byte = static_cast<std::byte>(value);
    value >>= 8;
  }
  return bytes;
}

std::string read_header_text(const ReadFile& file) {
  user_check(file.size() >= kLengthBytes,
             "'{}' is not a safetensors file: it has only {} bytes; check the path or get a fresh "
             "copy of it",
             file.path(), file.size());
  std::array<std::byte, kLengthBytes> bytes;
  file.read_at(0, bytes);
  uint64_t length = 0;
  for (size_t i = bytes.size(); i-- > 0;) {
    length = (length << 8) | std::to_integer<uint64_t>(bytes[i]);
  }
  user_check(
      length <= kMaxHeaderBytes && length <= static_cast<uint64_t>(file.size() - kLengthBytes),
      "'{}' is not a sound safetensors file: it claims a header of {} bytes but has {} bytes in "
      "all; check the path or get a fresh copy of it",
      file.path(), length, file.size());
  std::string text(length, '\0');
  file.read_at(kLengthBytes, std::as_writable_bytes(std::span(text)));
  return text;
}

// Writes to the file, and to the hash where there is one.
struct HashedFile {
  AtomicFile file;
  Sha256* hash;

  void write(std::span<const std::byte> bytes) {
    file.write(bytes);
    if (hash != nullptr) hash->update(bytes);
  }
};

// Widest elements first, so that all of them are aligned, then by name.
std::vector<const TensorToWrite*> in_file_order(std::span<const TensorToWrite> tensors) {
  std::vector<const TensorToWrite*> order;
  for (const TensorToWrite& tensor : tensors) order.push_back(&tensor);
  std::sort(order.begin(), order.end(), [](const TensorToWrite* a, const TensorToWrite* b) {
    return std::tuple(-size_of(a->type.dtype), std::string_view(a->name)) <
           std::tuple(-size_of(b->type.dtype), std::string_view(b->name));
  });
  return order;
}

// The bytes of a tensor, in order; `chunk` is room for those that have to be asked for.
template <class Body>
void for_each_piece(const TensorToWrite& tensor, std::vector<std::byte>& chunk, const Body& body) {
  const int64_t total = tensor.type.bytes().count;
  if (!tensor.fetch) {
    internal_check(std::ssize(tensor.bytes) == total,
                   "write_safetensors: the bytes of '" + tensor.name + "' do not fit its type");
    body(tensor.bytes);
    return;
  }
  chunk.resize(static_cast<size_t>(kChunkBytes));
  for (int64_t at = 0; at < total; at += kChunkBytes) {
    const auto piece =
        std::span(chunk).first(static_cast<size_t>(std::min(kChunkBytes, total - at)));
    tensor.fetch(at, piece);
    body(piece);
  }
}

}  // namespace

void stream_safetensors(std::span<const TensorToWrite> tensors) {
  std::vector<std::byte> chunk;
  for (const TensorToWrite* tensor : in_file_order(tensors)) {
    for_each_piece(*tensor, chunk, [](std::span<const std::byte>) {});
  }
}

void write_safetensors(const std::string& path, std::span<const TensorToWrite> tensors,
                       const std::map<std::string, std::string>& metadata, Sha256* hash) {
  const std::vector<const TensorToWrite*> order = in_file_order(tensors);

  SafetensorsHeader header{.metadata = metadata};
  int64_t offset = 0;
  for (const TensorToWrite* tensor : order) {
    const int64_t end = offset + tensor->type.bytes().count;
    header.rows.push_back({tensor->name, tensor->type, offset, end});
    offset = end;
  }
  const std::string text = print_safetensors_header(header);
  internal_check(text.size() <= kMaxHeaderBytes, "write_safetensors: the header is too long");

  HashedFile out{AtomicFile(path), hash};
  out.write(little_endian(text.size()));
  out.write(std::as_bytes(std::span(text)));
  std::vector<std::byte> chunk;
  for (const TensorToWrite* tensor : order) {
    for_each_piece(*tensor, chunk, [&](std::span<const std::byte> piece) { out.write(piece); });
  }
  out.file.commit();
}

SafetensorsFile::SafetensorsFile(std::string path) : file_(std::move(path)) {
  const std::string text = read_header_text(file_);
  const int64_t data_start = kLengthBytes + std::ssize(text);
  SafetensorsHeader header =
      parse_safetensors_header(text, file_.size() - data_start, file_.path());
  metadata_ = std::move(header.metadata);
  tensors_.reserve(header.rows.size());
  for (SafetensorsRow& row : header.rows) {
    if (!row.foreign.empty()) {
      foreign_[row.name] = row.foreign;
      continue;
    }
    tensors_.push_back({std::move(row.name), row.type, data_start + row.begin});
  }
  std::sort(tensors_.begin(), tensors_.end(),
            [](const StoredTensor& a, const StoredTensor& b) { return a.name < b.name; });
}

const StoredTensor* SafetensorsFile::find(std::string_view name) const {
  const auto found =
      std::lower_bound(tensors_.begin(), tensors_.end(), name,
                       [](const StoredTensor& a, std::string_view b) { return a.name < b; });
  return found != tensors_.end() && found->name == name ? &*found : nullptr;
}

const StoredTensor& SafetensorsFile::at(std::string_view name) const {
  const StoredTensor* found = find(name);
  if (const auto foreign = foreign_.find(name); foreign != foreign_.end()) {
    user_error("'{}' has the tensor '{}' as {}, which thimble does not read; store it as F32",
               path(), name, foreign->second);
  }
  user_check(found != nullptr,
             "'{}' has no tensor '{}' among its {}; it was saved from another model, so name the "
             "model it came from",
             path(), name, tensors_.size());
  return *found;
}

void SafetensorsFile::read_into(std::string_view name, std::span<std::byte> out) const {
  const StoredTensor& tensor = at(name);
  user_check(std::ssize(out) == tensor.type.bytes().count,
             "'{}' stores '{}' as {} ({} bytes) where {} bytes are wanted; it was saved from "
             "another model, so name the model it came from",
             path(), name, to_string(tensor.type), tensor.type.bytes().count, out.size());
  file_.read_at(tensor.offset, out);
}

void SafetensorsFile::read_part(const StoredTensor& tensor, int64_t begin,
                                std::span<std::byte> out) const {
  internal_check(begin >= 0 && begin + std::ssize(out) <= tensor.type.bytes().count,
                 "SafetensorsFile::read_part: outside the tensor");
  file_.read_at(tensor.offset + begin, out);
}

std::vector<float> numbers_of(const SafetensorsFile& file, std::string_view name) {
  const StoredTensor& stored = file.at(name);
  user_check(is_floating(stored.type.dtype), "'{}': tensor '{}' is {}, not of a floating type",
             file.path(), name, to_string(stored.type));
  std::vector<std::byte> bytes(static_cast<size_t>(stored.type.bytes().count));
  file.read_part(stored, 0, bytes);
  std::vector<float> numbers(static_cast<size_t>(stored.type.elements()));
  with_float_type(stored.type.dtype, [&]<class T>(TypeTag<T>) {
    const auto* const from = reinterpret_cast<const T*>(bytes.data());
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(from[i]);
  });
  return numbers;
}

}  // namespace thimble
