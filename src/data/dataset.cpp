#include "data/dataset.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "base/io/nearest_path.h"
#include "base/nearest_name.h"

namespace thimble {
namespace {

void check_folder(const DatasetDef& set, const std::string& folder) {
  user_check(!folder.empty(), "the data set '{}' needs a folder with its files; {}", set.name,
             set.where_to_get);
  std::error_code ignored;
  user_check(std::filesystem::is_directory(folder, ignored),
             "the data set '{}' is not at '{}', which is no folder; {}{}", set.name, folder,
             set.where_to_get, nearest_path_clause(folder));
}

}  // namespace

std::string_view name_of(Split split) { return split == Split::train ? "train" : "test"; }

const RecordField& DatasetInfo::field(std::string_view wanted) const {
  const RecordField* const found = find_field(fields, wanted);
  if (found == nullptr) internal_check(false, fmt::format("'{}' has no '{}'", name, wanted));
  return *found;
}

const std::vector<float>& DatasetInfo::constant(std::string_view wanted) const {
  const auto found = std::ranges::find(constants, wanted, &DataConstant::name);
  if (found == constants.end()) {
    internal_check(false, fmt::format("'{}' has no '{}'", name, wanted));
  }
  return found->numbers;
}

void Dataset::read_in_epoch(Split split, int64_t index, uint64_t,
                            std::span<const RecordPart> parts) const {
  read(split, index, parts);
}

int64_t Dataset::length(Split, int64_t, size_t field) const {
  const Shape& shape = info().fields[field].shape;
  return shape.rank() == 0 ? 1 : shape[0];
}

const DatasetDef* find_dataset(std::string_view named, std::string_view usual) {
  const auto find = [](std::string_view name) -> const DatasetDef* {
    const auto found = std::ranges::find(all_datasets(), name, &DatasetDef::name);
    return found == all_datasets().end() ? nullptr : *found;
  };
  const DatasetDef* const set = find(named.empty() ? usual : named);
  const bool gives_way = set != nullptr && !usual.empty() && set->gives_way_to == usual;
  return gives_way ? find(usual) : set;
}

const DatasetDef& dataset_named(std::string_view name) {
  std::vector<std::string> names;
  for (const DatasetDef* set : all_datasets()) {
    if (set->name == name) return *set;
    names.emplace_back(set->name);
  }
  // A path, which is no name: pictures are what it has most often.
  std::error_code ignored;
  const bool path = name.find('/') != std::string_view::npos;
  user_check(!path && !std::filesystem::is_directory(name, ignored),
             "'{0}' is not a data set but a folder's path; write --data images --data-dir {0}, or "
             "what else it holds (`thimble list data`)",
             name);
  user_error("'{}' is not a data set; known: {}{}", name, fmt::join(names, ", "),
             nearest_clause(name, names));
}

std::unique_ptr<Dataset> open_dataset(std::string_view name, const DataRequest& request) {
  const DatasetDef& set = dataset_named(name);
  if (!set.where_to_get.empty()) check_folder(set, request.folder);
  return set.open(request);
}

}  // namespace thimble
