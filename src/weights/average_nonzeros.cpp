#include "weights/average_nonzeros.h"

#include <bit>
#include <string>

#include "base/error.h"
#include "base/number/bits.h"
#include "base/number/dtype.h"
#include "transform/sparse_weights.h"

namespace thimble {
namespace {

constexpr std::string_view kMask = ".mask", kFirst = ".first";

bool is_mask(const SafetensorsFile& file, std::string_view name) {
  if (!name.ends_with(kMask)) return false;
  const std::string weight(name.substr(0, name.size() - kMask.size()));
  return file.find(weight + std::string(kFirst)) != nullptr;
}

// One weight as one file has it.
struct Packed {
  std::vector<uint8_t> mask;
  std::vector<float> nonzeros;

  bool has(int64_t element) const { return test_bit(mask.data(), element); }
};

template <class T>
std::vector<T> whole(const SafetensorsFile& file, const std::string& name) {
  std::vector<T> all(static_cast<size_t>(file.at(name).type.elements()));
  file.read_into(name, std::as_writable_bytes(std::span(all)));
  return all;
}

int64_t place_of(const SafetensorsFile& file, const std::string& weight, int64_t nonzeros) {
  const std::string name = weight + std::string(kFirst);
  const int64_t first = whole<int64_t>(file, name).at(0);
  const int64_t all = file.at(kSparseValues).type.elements();
  user_check(first >= 0 && first <= all - nonzeros,
             "'{}': the {} nonzeros of '{}' do not lie within '{}'; the file is damaged: name "
             "another checkpoint",
             file.path(), nonzeros, weight, kSparseValues);
  return first;
}

template <class T>
Packed read_packed(const SafetensorsFile& file, const std::string& weight) {
  Packed packed = {whole<uint8_t>(file, weight + std::string(kMask)), {}};
  int64_t count = 0;
  for (const uint8_t byte : packed.mask) count += std::popcount(byte);
  std::vector<T> stored(static_cast<size_t>(count));
  file.read_part(file.at(kSparseValues),
                 place_of(file, weight, count) * static_cast<int64_t>(sizeof(T)),
                 std::as_writable_bytes(std::span(stored)));
  for (const T number : stored) packed.nonzeros.push_back(static_cast<float>(number));
  return packed;
}

// Adds the other's numbers to `sums`, which belong to the nonzeros of `kept`.
void add(const Packed& other, const Packed& kept, std::span<double> sums) {
  size_t from = 0, to = 0;
  for (int64_t element = 0; element < 8 * std::ssize(kept.mask); ++element) {
    if (kept.has(element) && other.has(element))
      sums[to] += static_cast<double>(other.nonzeros[from]);
    to += kept.has(element) ? 1 : 0;
    from += other.has(element) ? 1 : 0;
  }
}

template <class T>
void put_mean(std::span<const std::unique_ptr<SafetensorsFile>> files, const std::string& weight,
              std::span<T> pool) {
  const Packed kept = read_packed<T>(*files.front(), weight);
  std::vector<double> sums(kept.nonzeros.size());
  for (const auto& file : files) add(read_packed<T>(*file, weight), kept, sums);
  const auto first =
      static_cast<size_t>(place_of(*files.front(), weight, std::ssize(kept.nonzeros)));
  for (size_t i = 0; i < sums.size(); ++i) {
    pool[first + i] =
        static_cast<T>(static_cast<float>(sums[i] / static_cast<double>(files.size())));
  }
}

}  // namespace

bool places_nonzeros(const SafetensorsFile& file, std::string_view name) {
  if (name.ends_with(kFirst)) {
    const std::string weight(name.substr(0, name.size() - kFirst.size()));
    return file.find(weight + std::string(kMask)) != nullptr;
  }
  return is_mask(file, name);
}

std::vector<std::byte> mean_of_nonzeros(std::span<const std::unique_ptr<SafetensorsFile>> files) {
  const SafetensorsFile& newest = *files.front();
  const TensorType type = newest.at(kSparseValues).type;
  std::vector<std::byte> bytes(static_cast<size_t>(type.bytes().count));
  newest.read_into(kSparseValues, bytes);
  with_float_type(type.dtype, [&]<class T>(TypeTag<T>) {
    const std::span pool(reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T));
    for (const StoredTensor& tensor : newest.tensors()) {
      if (!is_mask(newest, tensor.name)) continue;
      put_mean<T>(files, tensor.name.substr(0, tensor.name.size() - kMask.size()), pool);
    }
  });
  return bytes;
}

}  // namespace thimble
