#include "weights/average.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "base/error.h"
#include "base/number/dtype.h"
#include "transform/sparse_weights.h"
#include "weights/average_nonzeros.h"
#include "weights/safetensors.h"

namespace thimble {
namespace {

using Files = std::vector<std::unique_ptr<SafetensorsFile>>;

void check_alike(const SafetensorsFile& first, const SafetensorsFile& other) {
  const auto same = [](const StoredTensor& a, const StoredTensor& b) {
    return a.name == b.name && a.type == b.type;
  };
  user_check(std::ranges::equal(first.tensors(), other.tensors(), same),
             "'{}' and '{}' hold different models, which have no mean", first.path(), other.path());
}

// Adds up in double. So the order hardly ever matters to the last bit of the result, and the mean of
// equal numbers is that number.
template <class T>
void mean_of(const Files& files, const std::string& name, int64_t begin, std::span<std::byte> out) {
  std::vector<std::byte> part(out.size());
  std::vector<double> sums(out.size() / sizeof(T));
  const auto numbers = [](std::span<std::byte> bytes) {
    return std::span(reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T));
  };
  for (const auto& file : files) {
    file->read_part(file->at(name), begin, part);
    const std::span<T> read = numbers(part);
    for (size_t i = 0; i < read.size(); ++i)
      sums[i] += static_cast<double>(static_cast<float>(read[i]));
  }
  const std::span<T> result = numbers(out);
  const auto count = static_cast<double>(files.size());
  for (size_t i = 0; i < result.size(); ++i) {
    result[i] = static_cast<T>(static_cast<float>(sums[i] / count));
  }
}

void same_of(const Files& files, const std::string& name, int64_t begin, std::span<std::byte> out) {
  std::vector<std::byte> part(out.size());
  files.front()->read_part(files.front()->at(name), begin, out);
  for (const auto& file : files) {
    file->read_part(file->at(name), begin, part);
    user_check(std::ranges::equal(part, out),
               "'{}' of '{}' is not that of '{}': whole numbers have no mean; average checkpoints "
               "in which they are the same",
               name, file->path(), files.front()->path());
  }
}

// How the bytes of a tensor of the mean come about; those of the pool of nonzeros are there already.
TensorToWrite mean_tensor(const Files& files, const StoredTensor& tensor,
                          std::span<const std::byte> pool) {
  if (tensor.name == kSparseValues) return {tensor.name, tensor.type, pool, {}};
  const auto fetch = [&files, name = tensor.name, dtype = tensor.type.dtype](
                         int64_t begin, std::span<std::byte> to) {
    const SafetensorsFile& newest = *files.front();
    if (places_nonzeros(newest, name)) return newest.read_part(newest.at(name), begin, to);
    if (!is_floating(dtype)) return same_of(files, name, begin, to);
    with_float_type(dtype, [&]<class T>(TypeTag<T>) { mean_of<T>(files, name, begin, to); });
  };
  return {tensor.name, tensor.type, {}, fetch};
}

}  // namespace

void average_weights(std::span<const std::string> paths, const std::string& out) {
  user_check(!paths.empty(), "there are no checkpoints to average");
  Files files;
  for (const std::string& path : paths) {
    files.push_back(std::make_unique<SafetensorsFile>(path));
    check_alike(*files.front(), *files.back());
  }
  std::vector<std::byte> pool;
  if (files.front()->find(kSparseValues) != nullptr) pool = mean_of_nonzeros(files);
  std::vector<TensorToWrite> tensors;
  for (const StoredTensor& tensor : files.front()->tensors())
    tensors.push_back(mean_tensor(files, tensor, pool));
  write_safetensors(out, tensors, files.front()->metadata());
}

}  // namespace thimble
